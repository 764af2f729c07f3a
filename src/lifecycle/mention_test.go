package lifecycle_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestMentionsAreListed checks that every record whose text names another
// instance has its id in the mentions only.
func TestMentionsAreListed(t *testing.T) {
	const other = "other-vnf"
	taken := nf.E(nf.Conflict, "apply", "objects of others", nf.Violations{
		nf.Violation{Object: configMap("a")}.Saying(nf.Textf("belongs to %s", nf.Mention(other))),
	})
	free := nf.E(nf.Failed, "apply", "ConfigMap ns/a", nf.Errorf("secretly taken by %s", nf.Mention(other)))
	start := func(edit func(*nf.InstantiateRequest)) func(*testing.T, *site, *engine) nf.Operation {
		return func(t *testing.T, _ *site, e *engine) nf.Operation {
			t.Helper()
			return e.up(t, "a", edit)
		}
	}
	cases := map[string]struct {
		reason  string
		refusal error
		run     func(*testing.T, *site, *engine) nf.Operation
		records []string // whose texts name the instance
	}{
		"Kept": {
			reason: "the failure, its step and the failed instance", refusal: taken,
			run:     start(func(r *nf.InstantiateRequest) { r.OnFailure = nf.Keep }),
			records: []string{"failure", "instance", "step", "violation"},
		},
		"Masked": {
			reason: "an error in which secrets are masked", refusal: free,
			run: start(func(r *nf.InstantiateRequest) {
				r.OnFailure, r.Inputs.Parameters = nf.Keep, map[string]any{"secret": "secretly"}
			}),
			records: []string{"failure", "instance", "step"},
		},
		"Undone": {
			reason: "an instance whose change was undone", refusal: taken,
			run: func(t *testing.T, s *site, e *engine) nf.Operation {
				t.Helper()
				s.cluster.refuse("a", nil)
				first := e.up(t, "a", named)
				s.cluster.refuse("a", taken)
				op, err := e.Upgrade(t.Context(), first.Subject.ID, nf.UpgradeRequest{Edit: func(spec *nf.Spec) error {
					spec.Package = "a_b"
					s.cluster.refuse("a", nil)
					s.cluster.refuse("b", taken)
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				return e.end(t, op)
			},
			records: []string{"failure", "instance", "step", "violation"},
		},
		"UndoFails": {
			reason: "an undo that fails on the instance's object", refusal: nil,
			run: func(t *testing.T, s *site, e *engine) nf.Operation {
				t.Helper()
				first := e.up(t, "a", named)
				s.cluster.script("b", nf.InProgress, "pending")
				op, err := e.Upgrade(t.Context(), first.Subject.ID, nf.UpgradeRequest{Edit: func(spec *nf.Spec) error {
					spec.Package = "a_b"
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				s.cluster.refuse("a", taken)
				s.cluster.script("b", nf.StatusFailed, "crashed")
				return e.end(t, op)
			},
			records: []string{"failure", "instance", "step"},
		},
		"Tested": {
			reason: "a test that fails, and the operation that ran it", refusal: nil,
			run: func(t *testing.T, s *site, e *engine) nf.Operation {
				t.Helper()
				first := e.up(t, "a_probe.p", named)
				s.cluster.refuse("p", taken)
				op, err := e.Test(t.Context(), first.Subject.ID, nf.TestRequest{})
				if err != nil {
					t.Fatal(err)
				}
				return e.end(t, op)
			},
			records: []string{"failure", "step", "violation"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				s.cluster.refuse("a", tc.refusal)
				e := s.start()
				op := tc.run(t, s, e)
				in, err := e.Instance(t.Context(), op.Subject.ID)
				if err != nil || op.Failure == nil {
					t.Fatalf("%s: %v, failure %v", tc.reason, err, op.Failure)
				}
				texts := map[string]bool{} // whether the id is in the mentions only, by record
				note := func(record string, text nf.Text) {
					if strings.Contains(text.String(), other) {
						texts[record] = !strings.Contains(text.Message, other)
					}
				}
				note("failure", op.Failure.Said())
				for _, v := range op.Failure.Violations {
					note("violation", v.Said())
				}
				for _, step := range op.Steps {
					note("step", step.Said())
				}
				note("instance", in.Said())
				if diff := cmp.Diff(tc.records, slices.Sorted(maps.Keys(texts))); diff != "" {
					t.Errorf("%s: records that name the instance (-want +got):\n%s", tc.reason, diff)
				}
				for record, listed := range texts {
					if !listed {
						document, _ := json.Marshal([]any{op, in})
						t.Errorf("%s: the message of the %s names the instance: %s", tc.reason, record, document)
					}
				}
			})
		})
	}
}

// TestMentionsOfAWait checks that the reason of a wait lists the instances that
// it names, and that the failure after the deadline does so, too.
func TestMentionsOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		s.cluster.script("a", nf.InProgress, "pending")
		op, err := e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a"},
			Options: nf.Options{OnFailure: nf.Keep, Timeout: 15*time.Minute + 5*time.Second}}) // between two attempts to reach the region
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.cluster.leave(nf.E(nf.Unreachable, "reach", "the region", nf.Errorf("blocked by %s", nf.Mention("other-vnf"))))
		<-time.After(time.Minute)
		blocked := []nf.Mentioned{{Instance: "other-vnf"}}
		now, err := e.Operation(t.Context(), op.ID)
		if err != nil || now.Waiting == nil || !slices.Equal(now.Waiting.Mentions, blocked) {
			t.Errorf("the wait is %+v, %v", now.Waiting, err)
		}
		if op = e.end(t, op); !slices.Equal(op.Failure.Mentions, blocked) {
			t.Errorf("the failure is %+v", op.Failure)
		}
	})
}

// TestNameTakenListsItsHolder checks the error for a name that another instance
// has.
func TestNameTakenListsItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newSite(t).start()
		first := e.up(t, "a", named)
		req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "b"}}
		named(&req)
		_, err := e.Instantiate(t.Context(), req)
		if diff := cmp.Diff([]nf.Mentioned{{Instance: first.Subject.ID}}, nf.TextOf(err).Mentions); diff != "" || nf.KindOf(err) != nf.Exists {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}
