package sol003_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
)

// TestRepairs lets an operation fail, and retries it, rolls it back or makes it fail.
func TestRepairs(t *testing.T) {
	type attempt struct {
		repair func(t *testing.T, m *sol003.Manager, id string)
		fails  map[nf.Verb]int
		want   nf.OccurrenceState
	}
	retry := func(t *testing.T, m *sol003.Manager, id string) {
		t.Helper()
		must(t, m.Retry(t.Context(), id, nf.RequestKey{}))
	}
	rollback := func(t *testing.T, m *sol003.Manager, id string) {
		t.Helper()
		must(t, m.Rollback(t.Context(), id, nf.RequestKey{}))
	}
	fail := func(t *testing.T, m *sol003.Manager, id string) {
		t.Helper()
		_, err := m.Fail(t.Context(), id)
		must(t, err)
	}
	failing := func(verb nf.Verb) map[nf.Verb]int { return map[nf.Verb]int{verb: 1} }
	cases := map[string]struct {
		reason   string
		request  request
		attempts []attempt
		want     string // of the VNF: its package, its components and the level of its aspect; empty: not instantiated
	}{
		"Instantiate/Retry":    {"a retry completes the instantiation", instantiation, []attempt{{nil, failing(nf.Instantiate), nf.OccurrenceFailedTemp}, {retry, nil, nf.OccurrenceCompleted}}, "one 1 0"},
		"Instantiate/Twice":    {"a retry can fail, too", instantiation, []attempt{{nil, failing(nf.Instantiate), nf.OccurrenceFailedTemp}, {retry, failing(nf.Instantiate), nf.OccurrenceFailedTemp}, {retry, nil, nf.OccurrenceCompleted}}, "one 1 0"},
		"Instantiate/Rollback": {"a rollback leaves nothing", instantiation, []attempt{{nil, failing(nf.Instantiate), nf.OccurrenceFailedTemp}, {rollback, nil, nf.OccurrenceRolledBack}}, ""},
		"Instantiate/Stuck":    {"a rollback can fail, and is repeated", instantiation, []attempt{{nil, failing(nf.Instantiate), nf.OccurrenceFailedTemp}, {rollback, failing(nf.Terminate), nf.OccurrenceFailedTemp}, {rollback, nil, nf.OccurrenceRolledBack}}, ""},
		"Instantiate/Fail":     {"an instance that stays can be terminated", instantiation, []attempt{{nil, failing(nf.Instantiate), nf.OccurrenceFailedTemp}, {fail, nil, nf.OccurrenceFailed}}, "one 0 0"},
		"Instantiate/GiveUp":   {"or the occurrence is given up", instantiation, []attempt{{nil, failing(nf.Instantiate), nf.OccurrenceFailedTemp}, {rollback, failing(nf.Terminate), nf.OccurrenceFailedTemp}, {fail, nil, nf.OccurrenceFailed}}, "one 0 0"},
		"Scale/GiveUp":         {"of a scaling, too", scaling, []attempt{{nil, failing(nf.Scale), nf.OccurrenceFailedTemp}, {rollback, failing(nf.Rollback), nf.OccurrenceFailedTemp}, {fail, nil, nf.OccurrenceFailed}}, "one 1 0"},
		"Terminate/Retry":      {"a termination is retried", termination, []attempt{{nil, failing(nf.Terminate), nf.OccurrenceFailedTemp}, {retry, nil, nf.OccurrenceCompleted}}, ""},
		"Terminate/Fail":       {"the VNF is still instantiated", termination, []attempt{{nil, failing(nf.Terminate), nf.OccurrenceFailedTemp}, {fail, nil, nf.OccurrenceFailed}}, "one 1 0"},
		"Scale/Retry":          {"a scaling is retried", scaling, []attempt{{nil, failing(nf.Scale), nf.OccurrenceFailedTemp}, {retry, nil, nf.OccurrenceCompleted}}, "one 2 1"},
		"Scale/Rollback":       {"the level is the former one", scaling, []attempt{{nil, failing(nf.Scale), nf.OccurrenceFailedTemp}, {rollback, nil, nf.OccurrenceRolledBack}}, "one 1 0"},
		"Heal/Retry":           {"a heal is begun again", healing, []attempt{{nil, failing(nf.Heal), nf.OccurrenceFailedTemp}, {retry, nil, nf.OccurrenceCompleted}}, "one 1 0"},
		"Heal/Rollback":        {"the revision in force is applied again", healing, []attempt{{nil, failing(nf.Heal), nf.OccurrenceFailedTemp}, {rollback, nil, nf.OccurrenceRolledBack}}, "one 1 0"},
		"Package/Retry":        {"a change of the package is retried", changing, []attempt{{nil, failing(nf.Upgrade), nf.OccurrenceFailedTemp}, {retry, nil, nf.OccurrenceCompleted}}, "two 1 0"},
		"Package/Rollback":     {"the package is the former one", changing, []attempt{{nil, failing(nf.Upgrade), nf.OccurrenceFailedTemp}, {rollback, nil, nf.OccurrenceRolledBack}}, "one 1 0"},
		"Package/Again":        {"a retry follows a rollback that has failed, and is refused; the next rollback is not", changing, []attempt{{nil, failing(nf.Upgrade), nf.OccurrenceFailedTemp}, {rollback, failing(nf.Rollback), nf.OccurrenceFailedTemp}, {retry, nil, nf.OccurrenceFailedTemp}, {rollback, nil, nf.OccurrenceRolledBack}}, "one 1 0"},
		"Connect/Rollback":     {"networks are the former ones", connecting, []attempt{{nil, failing(nf.Upgrade), nf.OccurrenceFailedTemp}, {rollback, nil, nf.OccurrenceRolledBack}}, "one 1 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t)
				id := prepared(t, m, tc.request)
				var occurrence string
				for i, a := range tc.attempts {
					w.engine.fail(a.fails)
					if i == 0 {
						o, err := tc.request.make(t.Context(), m, id, nf.RequestKey{})
						must(t, err)
						occurrence = o.ID
					} else {
						a.repair(t, m, occurrence)
					}
					o := ended(t, m, occurrence)
					if o.State != a.want {
						t.Fatalf("%s: attempt %d ended %s, want %s: %+v", tc.reason, i+1, o.State, a.want, o.Failure)
					}
					if o.State == nf.OccurrenceFailedTemp && (o.Failure == nil || get(t, m, id).Occurrence != o.ID) {
						t.Errorf("%s: the failed occurrence is %+v", tc.reason, o)
					}
				}
				if got := described(get(t, m, id)); got != tc.want {
					t.Errorf("%s: the VNF is %q, want %q", tc.reason, got, tc.want)
				}
				if v := get(t, m, id); v.Occurrence != "" || v.Operation != "" {
					t.Errorf("%s: the VNF is still locked: %+v", tc.reason, v)
				}
				if other := "two"; get(t, m, id).Package == "one" {
					_, err := w.packages(w.kv).Remove(t.Context(), other)
					must(t, err)
				}
			})
		})
	}
}

// TestFailedBlocks checks that a failed occurrence blocks all other requests, and that
// only a failed one can be repaired.
func TestFailedBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		ctx, id := t.Context(), create(t, m)
		w.engine.fail(map[nf.Verb]int{nf.Instantiate: 1})
		o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, instantiate) })
		for name, r := range requests() {
			_, err := r.make(ctx, m, id, nf.RequestKey{})
			wantKind(t, name, err, nf.Conflict)
		}
		wantKind(t, "deletion", m.Delete(ctx, id), nf.Conflict)
		wantKind(t, "cancellation", m.Cancel(ctx, o.ID, true), nf.Conflict)
		must(t, m.Rollback(ctx, o.ID, nf.RequestKey{}))
		if now, err := m.Occurrence(ctx, o.ID); err != nil || now.State != nf.OccurrenceRollingBack {
			t.Errorf("a rollback that was accepted shows %s: %v", now.State, err)
		}
		if err := m.Retry(ctx, o.ID, nf.RequestKey{}); nf.KindOf(err) != nf.Busy && nf.KindOf(err) != nf.Conflict { // the attempt may have begun
			t.Errorf("a retry during the rollback: %v", err)
		}
		if o = ended(t, m, o.ID); o.State != nf.OccurrenceRolledBack || o.Failure == nil {
			t.Fatalf("the rollback ended %s", o.State)
		}
		want := []string{"VnfIdentifierCreationNotification", "INSTANTIATE STARTING", "INSTANTIATE PROCESSING", "INSTANTIATE FAILED_TEMP", "INSTANTIATE ROLLING_BACK", "INSTANTIATE ROLLED_BACK"}
		if diff := cmp.Diff(want, notices(t, m)); diff != "" {
			t.Errorf("the notices (-want +got):\n%s", diff)
		}
		wantKind(t, "the retry of one that was rolled back", m.Retry(ctx, o.ID, nf.RequestKey{}), nf.Conflict)
		wantKind(t, "its rollback", m.Rollback(ctx, o.ID, nf.RequestKey{}), nf.Conflict)
		_, err := m.Fail(ctx, o.ID)
		wantKind(t, "its failure", err, nf.Conflict)
		must(t, m.Delete(ctx, id))
	})
}

// TestCancel cancels occurrences whose engine takes an hour, and a minute for a step.
func TestCancel(t *testing.T) {
	type request struct {
		after    time.Duration // since the last one
		forceful bool
	}
	cases := map[string]struct {
		reason   string
		requests []request
		want     nf.OccurrenceState
		took     time.Duration
	}{
		"Forceful":  {"the engine's operation ends at once", []request{{5 * time.Second, true}}, nf.OccurrenceFailedTemp, 5 * time.Second},
		"Graceful":  {"it ends after its present step", []request{{5 * time.Second, false}}, nf.OccurrenceFailedTemp, 65 * time.Second},
		"Escalated": {"a forceful request can follow", []request{{5 * time.Second, false}, {5 * time.Second, true}}, nf.OccurrenceFailedTemp, 10 * time.Second},
		"Late":      {"what has ended cannot be cancelled", []request{{2 * time.Hour, false}}, nf.OccurrenceCompleted, 2 * time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.engine.takes = time.Hour
				m, _ := w.start(t)
				ctx, id, began := t.Context(), create(t, m), time.Now()
				o, err := m.Instantiate(ctx, id, instantiate)
				must(t, err)
				for _, r := range tc.requests {
					<-time.After(r.after)
					err = m.Cancel(ctx, o.ID, r.forceful)
					if tc.want == nf.OccurrenceCompleted {
						wantKind(t, tc.reason, err, nf.Conflict)
					} else {
						must(t, err)
					}
				}
				if o = ended(t, m, o.ID); o.State != tc.want || o.Cancel {
					t.Fatalf("%s: it ended %s: %+v", tc.reason, o.State, o.Failure)
				}
				if took := time.Since(began) - tc.took; took < 0 || took > 5*time.Second {
					t.Errorf("%s: it ended %s after the time that it may take", tc.reason, took)
				}
				if tc.want == nf.OccurrenceCompleted {
					return
				}
				w.engine.setTakes(time.Second)
				must(t, m.Retry(ctx, o.ID, nf.RequestKey{}))
				if o = ended(t, m, o.ID); o.State != nf.OccurrenceCompleted {
					t.Fatalf("the retry ended %s: %+v", o.State, o.Failure)
				}
			})
		})
	}
}

// TestStarting lets the first attempt fail before the engine has begun: the occurrence is
// rolled back.
func TestStarting(t *testing.T) {
	quota := nf.E(nf.Conflict, "instantiate", "the package", nil)
	cases := map[string]struct {
		reason  string
		grant   error
		refusal error
		want    nf.OccurrenceState
	}{
		"Granted": {"the id of the grant is recorded", nil, nil, nf.OccurrenceCompleted},
		"Denied":  {"an NFVO can deny it", nf.E(nf.Forbidden, "get", "the grant", nil), nil, nf.OccurrenceRolledBack},
		"Refused": {"and the engine refuse it", nil, quota, nf.OccurrenceRolledBack},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.grant = tc.grant
				if tc.refusal != nil {
					w.engine.refusals[nf.Instantiate] = tc.refusal
				}
				m, _ := w.start(t, func(c *config) { c.Granter = w })
				ctx, id := t.Context(), create(t, m)
				o := do(t, m, tc.want, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, instantiate) })
				if completed := tc.want == nf.OccurrenceCompleted; completed == (o.Failure != nil) || completed && o.Grant != "grant-1" || len(w.engine.instances) > 0 != completed {
					t.Errorf("%s: the occurrence is %+v", tc.reason, o)
				}
				if v := get(t, m, id); v.Occurrence != "" || (v.Instantiated != nil) != (tc.want == nf.OccurrenceCompleted) {
					t.Errorf("%s: the VNF is %+v", tc.reason, v)
				}
			})
		})
	}
}

// TestRace makes requests for one VNF at once, on two replicas: one is accepted.
func TestRace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		first, _ := w.start(t)
		second, _ := w.start(t)
		id := prepared(t, first, scaling)
		var mu sync.Mutex
		var accepted []string
		var all sync.WaitGroup
		for _, m := range []*sol003.Manager{first, second} {
			for name, r := range requests() {
				if r.fresh || name == "modify" { // which ends at once
					continue
				}
				all.Go(func() {
					o, err := r.make(t.Context(), m, id, nf.RequestKey{})
					if kind := nf.KindOf(err); err != nil && kind != nf.Busy && kind != nf.Conflict {
						t.Errorf("%s: %v", name, err)
					}
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						accepted = append(accepted, o.ID)
					}
				})
			}
		}
		all.Wait()
		if len(accepted) != 1 {
			t.Fatalf("%d requests were accepted", len(accepted))
		}
		if o := ended(t, second, accepted[0]); o.State != nf.OccurrenceCompleted {
			t.Errorf("it ended %s: %+v", o.State, o.Failure)
		}
		occurrences := 0
		for _, err := range first.OccurrencesFrom(t.Context(), nf.Cursor{}) {
			must(t, err)
			occurrences++
		}
		if occurrences != 2 {
			t.Errorf("there are %d occurrences", occurrences)
		}
	})
}

// TestRepeated repeats requests under their keys.
func TestRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t)
		ctx, id, key := t.Context(), create(t, m), nf.RequestKey{Client: "ann", Key: "k", Digest: "d"}
		w.engine.fail(map[nf.Verb]int{nf.Instantiate: 1})
		var ids []string
		for range 2 {
			o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return instantiation.make(ctx, m, id, key) })
			ids = append(ids, o.ID)
		}
		if ids[0] != ids[1] {
			t.Errorf("one request became %v", ids)
		}
		for range 2 {
			must(t, m.Retry(ctx, ids[0], key))
			if o := ended(t, m, ids[0]); o.State != nf.OccurrenceCompleted || len(o.Attempts) != 2 {
				t.Errorf("the retry ended %s after %v", o.State, o.Attempts)
			}
		}
	})
}

// TestKept checks how long occurrences are kept.
func TestKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t, func(c *config) { c.Retention = 24 * time.Hour })
		ctx, id := t.Context(), create(t, m)
		o := do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, instantiate) })
		last := do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
		<-time.After(48 * time.Hour)
		_, err := m.Occurrence(ctx, o.ID)
		must(t, err)
		must(t, m.Delete(ctx, id))
		<-time.After(time.Hour)
		for _, id := range []string{o.ID, last.ID} {
			_, err = m.Occurrence(ctx, id)
			wantKind(t, "the VNF was deleted, and the retention has passed", err, nf.NotFound)
		}
	})
}

// TestAfterFail scales and heals a VNF whose earlier occurrence was made to fail: its
// instance is broken.
func TestAfterFail(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		failed request
		by     nf.Verb // that fails
		then   request
		fails  map[nf.Verb]int
		want   []nf.OccurrenceState
		vnf    string
	}{
		"Heal":  {"a heal repairs it", changing, nf.Upgrade, healing, nil, []nf.OccurrenceState{nf.OccurrenceCompleted}, "one 1 0"},
		"Scale": {"so does a scaling, before it scales", scaling, nf.Scale, scaling, nil, []nf.OccurrenceState{nf.OccurrenceCompleted}, "one 2 1"},
		"Again": {"it cannot be repaired at first, so nothing is scaled", changing, nf.Upgrade, scaling, map[nf.Verb]int{nf.Rollback: 1}, []nf.OccurrenceState{nf.OccurrenceRolledBack, nf.OccurrenceCompleted}, "one 2 1"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				m, _ := w.start(t)
				id := prepared(t, m, tc.failed)
				w.engine.fail(map[nf.Verb]int{tc.by: 1})
				o := do(t, m, nf.OccurrenceFailedTemp, func() (nf.Occurrence, error) { return tc.failed.make(t.Context(), m, id, nf.RequestKey{}) })
				_, err := m.Fail(t.Context(), o.ID)
				must(t, err)
				w.engine.fail(tc.fails)
				for _, want := range tc.want {
					do(t, m, want, func() (nf.Occurrence, error) { return tc.then.make(t.Context(), m, id, nf.RequestKey{}) })
				}
				if got := described(get(t, m, id)); got != tc.vnf {
					t.Errorf("%s: the VNF is %q, want %q", tc.reason, got, tc.vnf)
				}
			})
		})
	}
}
