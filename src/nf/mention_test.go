package nf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// seenBy returns a text as it is for a reader who may not see an instance.
func seenBy(t *testing.T, text nf.Text, hidden string) string {
	t.Helper()
	mentions, err := nf.FilterMentions(text.Mentions, func(id string) (bool, error) { return id == hidden, nil })
	if err != nil {
		t.Fatal(err)
	}
	text.Mentions = mentions
	return text.String()
}

// TestTextf checks texts for a reader who may see all instances, and for one who
// may not see the instance "ready".
func TestTextf(t *testing.T) {
	t.Parallel()
	const hidden = "VNF instance (one that you may not see)"
	mention := nf.Mention("ready")
	violations := nf.Violations{nf.Violation{Field: "spec"}.Saying(nf.Textf("is used by %s", mention)), {Message: "is ready"}}
	cases := map[string]struct {
		reason    string
		text      nf.Text
		all, want string
	}{
		"None":    {reason: "a text without mentions", text: nf.Textf("%s is %s", "web", errors.New("ready")), all: "web is ready", want: "web is ready"},
		"Word":    {reason: "the id is a word of the sentence", text: nf.Textf("not ready: %s has it", mention), all: "not ready: VNF instance ready has it", want: "not ready: " + hidden + " has it"},
		"Longer":  {reason: "the id is a part of another id", text: nf.Textf("%s, %s, %s", nf.Mention("ready-1"), mention, nf.Mention("not-ready")), all: "VNF instance ready-1, VNF instance ready, VNF instance not-ready", want: "VNF instance ready-1, " + hidden + ", VNF instance not-ready"},
		"Foreign": {reason: "a chart's text contains the words of a mention", text: nf.Textf("hook says %q; belongs to %s", "VNF instance ready is up", mention), all: `hook says "VNF instance ready is up"; belongs to VNF instance ready`, want: `hook says "VNF instance ready is up"; belongs to ` + hidden},
		"Marker":  {reason: "a foreign text contains the placeholder", text: nf.Textf("%s: %s", "a\ufffcb", mention), all: "a\ufffdb: VNF instance ready", want: "a\ufffdb: " + hidden},
		"NoText":  {reason: "it is a character like others in a text without mentions", text: nf.Textf("%s", "a\ufffcb"), all: "a\ufffcb", want: "a\ufffcb"},
		"Nested":  {reason: "a text in a text", text: nf.Textf("%s; %d: %s", nf.Textf("%s stays", mention), 2, nf.Text{Message: "a\ufffc"}), all: "VNF instance ready stays; 2: a\ufffd", want: hidden + " stays; 2: a\ufffd"},
		"Errors": {reason: "an error in an error", text: nf.TextOf(nf.E(nf.Conflict, "apply", "ready", violations)),
			all: "cannot apply ready: spec: is used by VNF instance ready; is ready", want: "cannot apply ready: spec: is used by " + hidden + "; is ready"},
		"Wrapped": {reason: "the words around an error", text: nf.TextOf(nf.Errorf("cannot go on: %w", violations)), all: "cannot go on: spec: is used by VNF instance ready; is ready",
			want: "cannot go on: spec: is used by " + hidden + "; is ready"},
		"Joined": {reason: "errors of several causes", text: nf.TextOf(errors.Join(errors.New("a"), violations)), all: "a\nspec: is used by VNF instance ready; is ready",
			want: "a\nspec: is used by " + hidden + "; is ready"},
		"Around": {reason: "words that contain the id are left out", text: nf.TextOf(fmt.Errorf("cannot go on: %w", violations)), all: "spec: is used by VNF instance ready; is ready",
			want: "spec: is used by " + hidden + "; is ready"},
		"Plain": {reason: "errors without mentions keep all words", text: nf.TextOf(fmt.Errorf("cannot go on: %w", errors.New("ready"))), all: "cannot go on: ready", want: "cannot go on: ready"},
		"About": {reason: "words of others about the instance", text: nf.TextOf(nf.E(nf.Failed, "remove", "it", nf.About("ready", errors.New("instances/ready is stuck")))),
			all: "cannot remove it: instances/ready is stuck", want: "cannot remove it: the message names a VNF instance that you may not see"},
		"AboutAnother": {reason: "they mention the instance", text: nf.TextOf(nf.About("b", violations)), all: "spec: is used by VNF instance ready; is ready",
			want: "spec: is used by " + hidden + "; is ready"},
		"Masked": {reason: "the id is a secret", text: mention.Map(nf.NewRedactor([]string{"ready"}).Text), all: "VNF instance " + nf.Masked,
			want: "VNF instance the message names a VNF instance that you may not see"},
		"Kept": {reason: "masking keeps the mention", text: nf.Textf("secretly taken by %s", mention).Map(nf.NewRedactor([]string{"secretly"}).Text), all: nf.Masked + " taken by VNF instance ready",
			want: nf.Masked + " taken by " + hidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff([]string{tc.all, tc.want}, []string{tc.text.String(), seenBy(t, tc.text, "ready")}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCutText checks that no cut of a text shows a part of an id.
func TestCutText(t *testing.T) {
	t.Parallel()
	whole := nf.Textf("%s, %s.", nf.Mention("vnf-b-west"), nf.Mention("vnf-a"))
	for most := range whole.Message {
		cut := whole.Map(func(text string) string { return nf.Clip(text, most) })
		all := nf.Textf("see %s; %s", cut, nf.Mention("last"))
		want := "see VNF instance (one that you may not see), VNF instance vnf-a."
		got := seenBy(t, all, "vnf-b-west")
		if n := len(cut.String()); n == 0 || got[len(got)-len("; VNF instance last"):] != "; VNF instance last" {
			t.Errorf("cut at %d, the next mention is another: %q", most, got)
		}
		if shown := got[:len(got)-len("…; VNF instance last")]; len(shown) > len(want) || want[:len(shown)] != shown {
			t.Errorf("cut at %d: %q, want the beginning of %q", most, shown, want)
		}
	}
}

func TestErrorf(t *testing.T) {
	t.Parallel()
	cause := &nf.Error{Kind: nf.Busy, Op: "change", Subject: "it", Reason: nf.ReasonHeld}
	for name, err := range map[string]error{"Errorf": nf.Errorf("cannot go on: %w: %s", cause, nf.Mention("c")), "About": nf.About("c", cause)} {
		if nf.KindOf(err) != nf.Busy || nf.ReasonOf(err) != nf.ReasonHeld {
			t.Errorf("%s: the kind or the reason is lost: %v", name, err)
		}
		if err.Error() != nf.TextOf(err).String() {
			t.Errorf("%s: the error is %q, and its text %q", name, err, nf.TextOf(err))
		}
	}
	if text := nf.TextOf(nil); text.String() != "" {
		t.Errorf("no error says %q", text)
	}
}

func TestFilterFails(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	text := nf.TextOf(nf.About("a", nf.Errorf("%s", nf.Mention("b"))))
	_, err := nf.FilterMentions(text.Mentions, func(id string) (bool, error) {
		if id == "b" {
			return false, down
		}
		return false, nil
	})
	if !errors.Is(err, down) {
		t.Errorf("the error is %v", err)
	}
}

// TestMentionsAreStored checks that records keep the mentions of their texts.
func TestMentionsAreStored(t *testing.T) {
	t.Parallel()
	said := nf.Textf("%s, %s", nf.Mention("a"), nf.TextOf(nf.About("b", errors.New("x"))))
	type records struct {
		Operation nf.Operation
		Instance  nf.Instance
		Change    nf.Change
		Event     nf.LogEntry
	}
	var in nf.Instance
	in.Become(nf.Broken, said.Message, said.Mentions...)
	var step nf.Step
	step.Report(said.Message, said.Mentions...)
	want := records{
		Operation: nf.Operation{
			Steps: []nf.Step{step}, Waiting: &nf.Wait{For: said.Message, Mentions: said.Mentions},
			Failure: nf.FailureOf("apply", nf.Errorf("%w", nf.Violations{nf.Violation{}.Saying(said)})),
		},
		Instance: in, Change: nf.Change{Message: said.Message, Mentions: said.Mentions}, Event: nf.LogEntry{Message: said.Message, Mentions: said.Mentions},
	}
	var got records
	text, err := json.Marshal(want)
	if err := errors.Join(err, json.Unmarshal(text, &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for record, text := range map[string]nf.Text{
		"step": got.Operation.Steps[0].Said(), "wait": got.Operation.Waiting.Said(), "failure": got.Operation.Failure.Said(),
		"instance": got.Instance.Said(), "change": got.Change.Said(), "event": got.Event.Said(),
	} {
		if text.String() != "VNF instance a, x" {
			t.Errorf("the %s says %q", record, text)
		}
	}
}
