package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const hiddenMention = "VNF instance (one that you may not see)"

// sites is a keeper of one site in region east. Its operation mentions the
// world's instance.
type sites struct {
	access.SiteKeeper

	world *world
}

func (s sites) Site(context.Context, string) (nf.Site, error) {
	return nf.Site{ID: "s", Region: "east"}, nil
}

func (s sites) OperationsFrom(ctx context.Context, _ string, _ nf.Cursor) iter.Seq2[nf.Operation, error] {
	op, _ := s.Operation(ctx, "s", "o")
	return sequence([]nf.Operation{op})
}

func (s sites) Operation(context.Context, string, string) (nf.Operation, error) {
	w := s.world
	failure := nf.FailureOf("terminate", nf.Errorf("%s", w.text()))
	if w.failure != nil {
		failure = w.failure
	}
	return nf.Operation{
		ID: "o", Subject: nf.Subject{Kind: nf.SiteSubject, ID: "s"}, Region: "east", Site: nf.SiteTask{Instances: []string{w.mentioned, "vnf-a-east"}},
		Steps:   []nf.Step{w.step(), {Message: "it is " + w.mentioned}},
		Failure: failure,
	}, nil
}

func (s sites) Follow(ctx context.Context, site, id string, _ int) iter.Seq2[nf.OperationUpdate, error] {
	return func(yield func(nf.OperationUpdate, error) bool) {
		op, err := s.Operation(ctx, site, id)
		_ = yield(nf.OperationUpdate{Entry: nf.LogEntry{Message: s.world.text().Message, Mentions: s.world.text().Mentions}}, nil) &&
			yield(nf.OperationUpdate{Operation: &op}, err)
	}
}

func (s sites) Cancel(ctx context.Context, _, _ string) (nf.Operation, error) {
	return s.begun(ctx)
}

func (s sites) Create(ctx context.Context, _ nf.SiteRequest) (nf.Operation, error) {
	return s.begun(ctx)
}

func (s sites) Change(ctx context.Context, _ string, _ nf.SiteChangeRequest) (nf.Operation, error) {
	return s.begun(ctx)
}

func (s sites) Remove(ctx context.Context, _ string, _ nf.SiteRemoveRequest) (nf.Operation, error) {
	return s.begun(ctx)
}

func (s sites) begun(ctx context.Context) (nf.Operation, error) {
	op, err := s.Operation(ctx, "s", "o")
	return op, errors.Join(err, s.world.fail)
}

// answer is the result of a call: its JSON, without the ids that it lists.
type answer struct {
	Text   string
	Listed []string // ids in the fields for mentions and instances
	reads  []string // the reads of instances that the call made
}

// calls makes each call whose answer or error mentions the world's instance.
func (h *house) calls(ctx context.Context) map[string]func() (any, error) {
	keeper, operations := access.NewSites(h.Guarded, sites{world: h.world}), access.NewSiteOperations(h.Guarded, sites{world: h.world})
	spec := nf.InstantiateRequest{Spec: nf.Spec{Package: "pkg-a"}, Project: "a", Region: "east"}
	edit := nf.UpgradeRequest{Edit: func(*nf.Spec) error { return nil }}
	siteRequest := nf.SiteRequest{Site: nf.Site{ID: "s", Region: "east"}}
	keep := func(*nf.Region) error { return nil }
	return map[string]func() (any, error){
		"Instance":  func() (any, error) { return h.Instances.Instance(ctx, "vnf-a-east") },
		"Instances": func() (any, error) { return only("vnf-a-east")(h.Instances.Instances(ctx)) },
		"Operation": func() (any, error) { return h.Operations.Operation(ctx, "op-a-east") },
		"Operations": func() (any, error) {
			return only("op-a-east")(collected(h.Operations.OperationsFrom(ctx, "", nf.Cursor{})))
		},
		"Changes":            func() (any, error) { return h.Operations.Changes(ctx, "op-a-east") },
		"Upgrade":            func() (any, error) { return h.Instances.Upgrade(ctx, "vnf-a-east", edit) },
		"Cancel":             func() (any, error) { return h.Operations.Cancel(ctx, "op-a-east") },
		"CreateSite":         func() (any, error) { return keeper.CreateSite(ctx, siteRequest) },
		"CancelSite":         func() (any, error) { return operations.Cancel(ctx, "s", "o") },
		"Follow":             func() (any, error) { return collected(h.Operations.Follow(ctx, "op-a-east")) },
		"PreviewInstantiate": func() (any, error) { return h.Instances.PreviewInstantiate(ctx, spec) },
		"SiteOperation":      func() (any, error) { return operations.Operation(ctx, "s", "o") },
		"SiteOperations":     func() (any, error) { return collected(operations.OperationsFrom(ctx, "s", nf.Cursor{})) },
		"FollowSite":         func() (any, error) { return collected(operations.Follow(ctx, "s", "o", 0)) },

		"fail: Instantiate":   func() (any, error) { return h.Instances.Instantiate(ctx, spec) },
		"fail: Upgrade":       func() (any, error) { return h.Instances.Upgrade(ctx, "vnf-a-east", edit) },
		"fail: Cancel":        func() (any, error) { return h.Operations.Cancel(ctx, "op-a-east") },
		"fail: Register":      func() (any, error) { return h.Regions.Register(ctx, nf.Region{ID: "east"}) },
		"fail: UpdateRegion":  func() (any, error) { return h.Regions.UpdateRegion(ctx, "east", keep) },
		"fail: RemoveRegion":  func() (any, error) { return nil, h.Regions.RemoveRegion(ctx, "east") },
		"fail: CreatePackage": func() (any, error) { return h.Packages.CreatePackage(ctx, nf.Package{ID: "pkg-a"}) },
		"fail: UpdatePackage": func() (any, error) {
			return h.Packages.UpdatePackage(ctx, "pkg-a", func(*nf.Package) error { return nil })
		},
		"fail: RemovePackage": func() (any, error) { return nil, h.Packages.RemovePackage(ctx, "pkg-a") },
		"fail: CreateSite": func() (any, error) {
			return keeper.CreateSite(ctx, siteRequest)
		},
		"fail: ChangeSite": func() (any, error) { return keeper.ChangeSite(ctx, "s", nf.SiteChangeRequest{}) },
		"fail: RemoveSite": func() (any, error) { return keeper.RemoveSite(ctx, "s", nf.SiteRemoveRequest{}, false) },
		"fail: CancelSite": func() (any, error) { return operations.Cancel(ctx, "s", "o") },
	}
}

func (h *house) answers(ctx context.Context, t *testing.T) map[string]answer {
	t.Helper()
	out := map[string]answer{}
	for name, call := range h.calls(ctx) {
		h.world.fail, h.world.reads = nil, nil
		fails := strings.HasPrefix(name, "fail: ")
		if fails {
			h.world.fail = nf.Errorf("wrapped: %w", nf.E(nf.Conflict, "apply", "objects of others", h.world.conflict()))
		}
		got, err := call()
		if fails != (err != nil) || fails && (nf.KindOf(err) != nf.Conflict || len(nf.ViolationsOf(err)) != 2) {
			t.Fatalf("%s: %v", name, err)
		}
		if fails {
			got = []any{err.Error(), nf.ViolationsOf(err)}
		}
		a := answer{reads: slices.Clone(h.world.reads)}
		a.Text = shown(t, got, &a.Listed)
		out[name] = a
	}
	return out
}

// shown returns a value in JSON as its reader sees it, and adds the ids that it
// lists to listed.
func shown(t *testing.T, value any, listed *[]string) string {
	t.Helper()
	text, err := json.Marshal(value)
	var document any
	if err := errors.Join(err, json.Unmarshal(text, &document)); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				strip(item)
			}
		case map[string]any:
			var text nf.Text
			encoded, _ := json.Marshal(v["mentions"])
			if err := json.Unmarshal(encoded, &text.Mentions); err != nil {
				t.Fatal(err)
			}
			for _, m := range text.Mentions {
				if m.Instance != "" {
					*listed = append(*listed, m.Instance)
				}
			}
			for _, name := range []string{"message", "for"} {
				if message, ok := v[name].(string); ok {
					text.Message = message
					v[name] = text.String()
				}
			}
			ids, _ := v["instances"].([]any)
			for _, id := range ids {
				*listed = append(*listed, fmt.Sprint(id))
			}
			delete(v, "mentions")
			delete(v, "instances")
			for _, item := range v {
				strip(item)
			}
		}
	}
	strip(document)
	text, err = json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(*listed)
	*listed = slices.Compact(*listed)
	return string(text)
}

// only returns the instance or operation with an id from a list.
func only(id string) func(list any, err error) (any, error) {
	return func(list any, err error) (any, error) {
		switch list := list.(type) {
		case []nf.Instance:
			return list[slices.IndexFunc(list, func(in nf.Instance) bool { return in.ID == id })], err
		case []nf.Operation:
			return list[slices.IndexFunc(list, func(op nf.Operation) bool { return op.ID == id })], err
		}
		return nil, err
	}
}

func collected[T any](items iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// TestMentions checks that no answer reveals the id of an instance that the
// identity may not see, and that other texts stay as they are.
func TestMentions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, mentioned string
		hidden            bool
	}{
		"Hidden":  {"an instance of another region", "vnf-b-west", true},
		"Word":    {"the id is an ordinary word that unrelated texts contain", "ready", true},
		"Region":  {"the id of the instance is also that of a region", "east", true},
		"Gone":    {"an instance without a record has an unknown scope", "gone", true},
		"Visible": {"an instance of the region", "vnf-b-east", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.world.mentioned = tc.mentioned
			h.world.more = []nf.Instance{{ID: "ready", Project: "b", Region: "west"}, {ID: "east", Project: "b", Region: "west"}}
			all, got := h.answers(h.as(t, "admin-all"), t), h.answers(h.as(t, "admin-east"), t)
			for call, want := range all {
				if !slices.Contains(want.Listed, tc.mentioned) || !strings.Contains(want.Text, "not "+tc.mentioned+": belongs to VNF instance "+tc.mentioned+".") {
					t.Errorf("%s: an identity that may see all instances gets %+v", call, want)
				}
				if tc.hidden {
					want.Text = strings.ReplaceAll(want.Text, "VNF instance "+tc.mentioned+".", hiddenMention+".")
					want.Listed = slices.DeleteFunc(want.Listed, func(id string) bool { return id == tc.mentioned })
				}
				if diff := cmp.Diff(want, got[call], cmpopts.IgnoreUnexported(answer{}), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", call, tc.reason, diff)
				}
			}
		})
	}
}

// TestMentionsReadLittle checks that the reads for an answer do not grow with
// the number of instances.
func TestMentionsReadLittle(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := h.as(t, "admin-east")
	few := h.answers(ctx, t)
	for i := range 1000 {
		h.world.more = append(h.world.more, nf.Instance{ID: fmt.Sprintf("vnf-%d", i), Project: "b", Region: "west"})
	}
	for call, many := range h.answers(ctx, t) {
		if diff := cmp.Diff(few[call].reads, many.reads); diff != "" {
			t.Errorf("%s: the reads depend on the number of instances (-few +many):\n%s", call, diff)
		}
		if call != "Instances" && slices.Contains(many.reads, "instances") {
			t.Errorf("%s: lists all instances: %v", call, many.reads)
		}
	}
}

// TestMentionsInFailures checks the message of a failure for an identity that may
// not see one of the instances.
func TestMentionsInFailures(t *testing.T) {
	t.Parallel()
	const hidden, other = "vnf-b-west", "vnf-a-east"
	failed := func(subject string, cause error) *nf.Failure {
		return nf.FailureOf("terminate", nf.E(nf.Failed, "terminate", subject, cause))
	}
	const nothing = "the message names a VNF instance that you may not see"
	cases := map[string]struct {
		reason  string
		failure *nf.Failure
		message string
	}{
		"Cause": {"the action and the object remain", failed("the site", nf.Errorf("belongs to %s", nf.Mention(hidden))), "cannot terminate the site: belongs to " + hiddenMention},
		"About": {"the whole message is about the hidden instance", nf.FailureOf("terminate", nf.About(hidden, nf.E(nf.Failed, "terminate", "VNF instance "+hidden, nil))), nothing},
		"Visible": {"an instance that the caller may see", nf.FailureOf("terminate", nf.About(other, nf.E(nf.Failed, "terminate", "VNF instance "+other, nil))),
			"cannot terminate VNF instance " + other + ": failed"},
		"Another": {"words about an instance that the caller may see mention another", nf.FailureOf("terminate", nf.About(other, nf.Errorf("belongs to %s", nf.Mention(hidden)))),
			"belongs to " + hiddenMention},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.world.failure = tc.failure
			for who, message := range map[string]string{"admin-all": tc.failure.Said().String(), "admin-east": tc.message} {
				op, err := access.NewSiteOperations(h.Guarded, sites{world: h.world}).Operation(h.as(t, who), "s", "o")
				if err != nil {
					t.Fatal(err)
				}
				want := *tc.failure
				if diff := cmp.Diff(want, *op.Failure, cmpopts.IgnoreFields(nf.Failure{}, "Mentions")); diff != "" {
					t.Errorf("%s: %s: only the mentions change (-want +got):\n%s", who, tc.reason, diff)
				}
				if got := op.Failure.Said().String(); got != message {
					t.Errorf("%s: %s: %q, want %q", who, tc.reason, got, message)
				}
				if who == "admin-east" && message != tc.failure.Said().String() && strings.Contains(shown(t, op.Failure, new([]string)), hidden) {
					t.Errorf("%s: %s: the failure contains the id: %+v", who, tc.reason, op.Failure)
				}
			}
		})
	}
}
