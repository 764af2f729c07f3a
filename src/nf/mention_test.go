package nf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestHideMentions(t *testing.T) {
	t.Parallel()
	const hidden = "VNF instance (one that you may not see)"
	const all = "the message names a VNF instance that you may not see"
	cases := map[string]struct {
		reason, text string
		ids          []string
		want         string
	}{
		"None":        {"a text without mentions stays", "web is not ready", nil, "web is not ready"},
		"End":         {"a mention at the end", "belongs to VNF instance a-1", []string{"a-1"}, "belongs to " + hidden},
		"Sentence":    {"a full stop is not part of the id", "belongs to VNF instance a-1. Next", []string{"a-1"}, "belongs to " + hidden + ". Next"},
		"Word":        {"the id is an ordinary word elsewhere", "not ready: VNF instance ready has it", []string{"ready"}, "not ready: " + hidden + " has it"},
		"Longer":      {"an id that begins with the hidden one", "VNF instance a, VNF instance a-1", []string{"a"}, hidden + ", VNF instance a-1"},
		"Several":     {"every mention of every id", "VNF instance a, VNF instance b, VNF instance a", []string{"a", "b"}, hidden + ", " + hidden + ", " + hidden},
		"Pattern":     {"the id is not a pattern", "VNF instance a.b, VNF instance axb", []string{"a.b"}, hidden + ", VNF instance axb"},
		"Replacement": {"an id may contain a part of the replacement", "VNF instance one, VNF instance see", []string{"one", "see"}, hidden + ", " + hidden},
		"Cut":         {"a part of the id may remain", "belongs to VNF instance vnf-b-w…", []string{"vnf-b-west"}, all},
		"CutAgain":    {"a part of a later mention remains, too", "VNF instance vnf-b-west, VNF instance vnf-b-w…", []string{"vnf-b-west"}, hidden + ", " + hidden + "…"},
		"CutInside":   {"cut texts are parts of longer ones", "VNF instance b-1: VNF instance b-… (12 more bytes); VNF instance b-1", []string{"b-1"}, hidden + ": " + hidden + "… (12 more bytes); " + hidden},
		"CutVisible":  {"the part cannot be of the hidden id", "VNF instance b-1, VNF instance c…", []string{"b-1"}, hidden + ", VNF instance c…"},
		"CutBefore":   {"nothing of an id remains", "VNF instance b-1, VNF instance …", []string{"b-1"}, hidden + ", VNF instance …"},
		"CutShorter":  {"the mention of a hidden id is at the cut", "VNF instance b-1, VNF instance b…", []string{"b-1", "b"}, hidden + ", " + hidden + "…"},
		"Masked":      {"a secret value in the mention was masked", "belongs to " + nf.Masked + " vnf-b-west", []string{"vnf-b-west"}, all},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, nf.HideMentions(tc.text, tc.ids)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMayName(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, text string
		want         bool
	}{
		"Mention": {"a mention", "VNF instance a-1", true},
		"Masked":  {"the id without the words that name it", nf.Masked + " a-1", true},
		"Cut":     {"a part of a mention", "VNF instance a…", true},
		"Other":   {"another instance", "VNF instance b", false},
		"Empty":   {"no text", "", false},
	}
	for name, tc := range cases {
		if got := nf.MayName(tc.text, "a-1"); got != tc.want {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}

func TestMentionsOf(t *testing.T) {
	t.Parallel()
	violations := nf.Violations{{Message: "is used by VNF instance b", Mentions: []string{"b"}}, {Message: "is used by VNF instance a", Mentions: []string{"a"}}}
	plain := errors.New("VNF instance c is in the way")
	cases := map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"Nil":        {"no error", nil, nil},
		"Undeclared": {"texts are not searched", plain, nil},
		"Violations": {"the violations' ids, sorted", nf.E(nf.Conflict, "apply", "objects", violations), []string{"a", "b"}},
		"Wrapped":    {"in wrapped errors", fmt.Errorf("cannot go on: %w", nf.Mentioning(plain, "c")), []string{"c"}},
		"Joined":     {"in every branch, each once", errors.Join(plain, violations, nf.Mentioning(violations, "c", "a")), []string{"a", "b", "c"}},
		"NoIDs":      {"no ids", nf.Mentioning(plain), nil},
		"NilError":   {"a nil error stays nil", nf.Mentioning(nil, "c"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, nf.MentionsOf(tc.err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if err := nf.Mentioning(nil, "c"); err != nil {
		t.Errorf("a nil error becomes %v", err)
	}
	busy := nf.Mentioning(&nf.Error{Kind: nf.Busy, Reason: nf.ReasonHeld}, "c")
	if nf.KindOf(busy) != nf.Busy || nf.ReasonOf(busy) != nf.ReasonHeld {
		t.Errorf("the kind or the reason is lost: %v", busy)
	}
}

// TestMentionsAreStored checks that records keep the ids of their texts.
func TestMentionsAreStored(t *testing.T) {
	t.Parallel()
	ids := []string{"a", "b"}
	type records struct {
		Operation nf.Operation
		Instance  nf.Instance
		Change    nf.Change
		Event     nf.LogEntry
	}
	var in nf.Instance
	in.Become(nf.Broken, "x", ids...)
	want := records{
		Operation: nf.Operation{
			Steps: []nf.Step{{Message: "x", Mentions: ids}}, Waiting: &nf.Wait{For: "x", Mentions: ids},
			Failure: nf.FailureOf("apply", nf.Mentioning(nf.Violations{{Message: "x", Mentions: ids}}, "c")),
		},
		Instance: in, Change: nf.Change{Message: "x", Mentions: ids}, Event: nf.LogEntry{Message: "x", Mentions: ids},
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, want.Operation.Failure.Mentions); diff != "" {
		t.Errorf("the failure of an error lists its ids (-want +got):\n%s", diff)
	}
	var got records
	text, err := json.Marshal(want)
	if err := errors.Join(err, json.Unmarshal(text, &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
