package lifecycle_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestDeletionGuard(t *testing.T) {
	cases := map[string]struct {
		reason   string
		from, to string
		guard    lifecycle.DeletionGuard
		asked    bool
	}{
		"Few":       {"a small change needs no confirmation", "a_b-c-d-e", "a_b-c-d", lifecycle.DeletionGuard{}, false},
		"HalfOfTwo": {"a small instance may lose a part of what is little", "a-b", "a", lifecycle.DeletionGuard{}, false},
		"Most":      {"more than half of the objects is worth a question", "a-b-c-d-e", "a-b", lifecycle.DeletionGuard{}, true},
		"Many":      {"so is a number", "a-b-c-d-e-f", "a-b-c-d", lifecycle.DeletionGuard{Objects: 1, Share: 1}, true},
		"Volume":    {"data are never deleted by the way", "a_PersistentVolumeClaim.data", "a", lifecycle.DeletionGuard{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t)
				e := s.start(func(c *config) { c.DeletionGuard = tc.guard })
				first := e.up(t, tc.from)
				synctest.Wait()
				held := s.everything()
				req := change(tc.to, "xl")
				preview, perr := e.PreviewUpgrade(t.Context(), first.Subject.ID, req)
				op, err := e.Upgrade(t.Context(), first.Subject.ID, req)
				if asked := nf.ReasonOf(err) == nf.ReasonConfirm; asked != tc.asked || err != nil && !asked {
					t.Fatalf("%s: asked %t, error %v", tc.reason, asked, err)
				}
				if perr != nil || preview.Confirm != nf.ConfirmOf(err) {
					t.Errorf("%s: a dry run tells another confirmation: %q, error %v", tc.reason, preview.Confirm, perr)
				}
				if !tc.asked {
					e.end(t, op)
					return
				}
				if nf.KindOf(err) != nf.Conflict || len(nf.ViolationsOf(err)) == 0 {
					t.Errorf("%s: the refusal does not say what would be deleted: %v", tc.reason, err)
				}
				if diff := cmp.Diff(held, s.everything()); diff != "" {
					t.Errorf("%s: the refused request changed (-before +after):\n%s", tc.reason, diff)
				}
				req.Confirm = "sha256:of something else"
				if _, err := e.Upgrade(t.Context(), first.Subject.ID, req); nf.ReasonOf(err) != nf.ReasonConfirm {
					t.Errorf("%s: another confirmation was taken: %v", tc.reason, err)
				}
				req.Confirm = preview.Confirm
				if op, err = e.Upgrade(t.Context(), first.Subject.ID, req); err != nil {
					t.Fatalf("%s: the confirmed request: %v", tc.reason, err)
				}
				if op = e.end(t, op); op.State != nf.Succeeded {
					t.Errorf("%s: %+v", tc.reason, op.Failure)
				}
			})
		})
	}
}

func TestRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start(func(c *config) { c.Revisions = 3 })
		id := e.up(t, "db_one").Subject.ID
		for _, pkg := range []string{"db_two", "db_three"} {
			op, err := e.Upgrade(t.Context(), id, change(pkg, pkg))
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
		}
		steps := []struct {
			to      int
			kind    nf.Kind // of the refusal; Internal: none
			live    []string
			revised int
		}{
			{to: 0, live: []string{"db", "two"}, revised: 4}, // the one before
			{to: 9, kind: nf.NotFound},
			{to: 1, kind: nf.NotFound}, // the oldest is no longer kept
			{to: 3, live: []string{"db", "three"}, revised: 5},
		}
		for _, step := range steps {
			op, err := e.Rollback(t.Context(), id, nf.RollbackRequest{Revision: step.to})
			if step.kind != nf.Internal {
				if nf.KindOf(err) != step.kind {
					t.Errorf("to %d: %v", step.to, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("to %d: %v", step.to, err)
			}
			if op = e.end(t, op); op.State != nf.Succeeded || op.Verb != nf.Rollback {
				t.Fatalf("to %d: %s %s %+v", step.to, op.Verb, op.State, op.Failure)
			}
			if diff := cmp.Diff(step.live, s.cluster.live()); diff != "" {
				t.Errorf("to %d: objects (-want +got):\n%s", step.to, diff)
			}
			in, _ := e.Instance(t.Context(), id)
			if in.Revision != step.revised || in.Package != "db_"+step.live[1] {
				t.Errorf("to %d: revision %d of %s", step.to, in.Revision, in.Package)
			}
		}
		all, err := e.Revisions(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var numbers []int
		for _, rev := range all {
			numbers = append(numbers, rev.Number)
		}
		if diff := cmp.Diff([]int{3, 4, 5}, numbers); diff != "" {
			t.Errorf("kept revisions (-want +got):\n%s", diff)
		}
		gone, err := e.Terminate(t.Context(), id, nf.TerminateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		e.end(t, gone)
		if left := s.records(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// TestRollbackSkipsWhatFailed goes back past a change that failed and was kept:
// it was never in force.
func TestRollbackSkipsWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.cluster.status["bad"] = health{nf.StatusFailed, "ImagePullBackOff"}
		e := s.start()
		id := e.up(t, "db_one").Subject.ID
		for _, pkg := range []string{"db_bad", "db_two"} {
			req := change(pkg, pkg)
			req.OnFailure = nf.Keep
			op, err := e.Upgrade(t.Context(), id, req)
			if err != nil {
				t.Fatal(err)
			}
			e.end(t, op)
		}
		op, err := e.Rollback(t.Context(), id, nf.RollbackRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if op = e.end(t, op); op.State != nf.Succeeded {
			t.Errorf("the rollback: %+v", op.Failure)
		}
		if diff := cmp.Diff([]string{"db", "one"}, s.cluster.live()); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

// TestKeys repeats requests under keys, in turn and at once.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		e := s.start()
		request := func(client, key, digest string) (nf.Operation, error) {
			return e.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "a"},
				Options: nf.Options{Key: nf.RequestKey{Client: client, Key: key, Digest: digest}}})
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids := map[string]bool{}
		for range 10 {
			wg.Go(func() {
				for {
					op, err := request("so", "k", "d")
					if nf.KindOf(err) == nf.Busy {
						<-time.After(nf.RetryAfterOf(err))
						continue
					}
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					ids[op.ID] = true
					mu.Unlock()
					return
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 {
			t.Errorf("ten requests under one key became %d operations", len(ids))
		}
		for id := range ids {
			e.end(t, nf.Operation{ID: id}) // its objects are there
		}
		if all, _ := e.Instances(t.Context()); len(all) != 1 {
			t.Errorf("and %d instances", len(all))
		}
		if _, err := request("so", "k", "another"); nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != "idempotency-key-reused" {
			t.Errorf("another request under the key: %v", err)
		}
		if _, err := request("cds", "k", "d"); nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) == "idempotency-key-reused" {
			t.Errorf("another client's key of the same name is his own, and his request meets the objects: %v", err)
		}
		// A request that is refused uses up no key.
		wrong := nf.InstantiateRequest{Region: "nowhere", Spec: nf.Spec{Package: "z"}, Options: nf.Options{Key: nf.RequestKey{Key: "again", Digest: "d"}}}
		if _, err := e.Instantiate(t.Context(), wrong); nf.KindOf(err) != nf.NotFound {
			t.Errorf("a wrong request: %v", err)
		}
		wrong.Region = "east"
		if _, err := e.Instantiate(t.Context(), wrong); err != nil {
			t.Errorf("the same, put right: %v", err)
		}
	})
}

// TestClean leaves behind what only a death can, and lets time pass: it goes, and
// nothing else does.
func TestClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var m meter
		e := s.replica(&m)
		op := e.up(t, "a_b", named)
		network := nf.Holder{Subject: nf.Subject{Kind: "network", ID: "gone"}} // a kind that sweeps its own records
		namespaces := store.NewHolds(s.kv, "namespaceuse/")
		if err := errors.Join(s.catalog.Hold(t.Context(), nf.Holding{Holder: network, Region: "east", Package: "a_b"}), namespaces.Add(t.Context(), "east/ns", network)); err != nil {
			t.Fatal(err)
		}
		want, held := s.records(), s.catalog.held()
		litter := map[string]string{
			"instancenames/east/ns/lost":  `{"region":"east","namespace":"ns","name":"lost","instance":"gone"}`,
			"revisions/gone/00000001":     `{"instance":"gone","number":1,"operation":"none"}`,
			"namespaceuse/east/forgotten": `{"key":"east/forgotten","removing":"vnf_instance/gone"}`,
			"uploads/half":                `{"id":"half"}`,
			"chunks/half/00000000":        `half of a plan`,
		}
		for key, value := range litter {
			if _, err := s.kv.Put(t.Context(), key, []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
		dead := nf.Holder{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "gone"}}
		former := nf.Holder{Subject: op.Subject, Scope: nf.Scope{Project: "another", Region: "east"}} // an earlier instance had the id
		if err := errors.Join(
			s.catalog.Hold(t.Context(), nf.Holding{Holder: dead, Region: "east"}), namespaces.Add(t.Context(), "east/ns", dead),
			s.catalog.Hold(t.Context(), nf.Holding{Holder: former, Region: "east", Package: "a_b"}),
		); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		if diff := cmp.Diff(want, s.records()); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(held, s.catalog.held()); diff != "" {
			t.Errorf("holds (-want +got):\n%s", diff)
		}
		if in, err := e.Instance(t.Context(), op.Subject.ID); err != nil || in.State != nf.Ready {
			t.Errorf("the instance: %+v, %v", in, err)
		}
	})
}

// TestHoldsAreReadOnce counts how often a search for stale records reads the holds,
// which are as many as all instances and their namespaces.
func TestHoldsAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists []string
		e := newSite(t).start(func(c *config) {
			c.KV = storetest.Failing{KV: c.KV, Fail: func(method, key string) error {
				if method == "List" && strings.HasPrefix(key, "holds/") {
					lists = append(lists, key)
				}
				return nil
			}}
		})
		<-time.After(2 * time.Minute)
		e.stop()
		if diff := cmp.Diff([]string{"holds/"}, lists); diff != "" {
			t.Errorf("the first search lists (-want +got):\n%s", diff)
		}
	})
}
