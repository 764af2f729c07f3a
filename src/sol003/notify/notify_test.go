package notify_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
	"github.com/multicloud-k8s/k8splugin/src/sol003/notify"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

func isLease(key string) bool {
	return strings.Contains(key, "/replicas/") || strings.Contains(key, "/shards/") || strings.Contains(key, "/leader/")
}

func (w *world) want(reason string, want ...string) {
	w.t.Helper()
	if want == nil {
		want = []string{}
	}
	got := w.told()
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(vnfOf(a), vnfOf(b)) })
	if d := cmp.Diff(want, got); d != "" {
		w.t.Errorf("%s: -want +got:\n%s", reason, d)
	}
}

func vnfOf(told string) string {
	id, _, _ := strings.Cut(told, " ")
	return id
}

// TestLifecycle notifies of the life of VNFs in their order.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	play(t, subscriber.Config{}, func(t *testing.T, w *world) {
		r := w.replica(nil)
		w.subscribe(r, nil)
		w.start(r)
		w.want("the test of a callback is not a notification")
		w.notice(r, created("a"))
		for _, state := range []nf.OccurrenceState{nf.OccurrenceStarting, nf.OccurrenceProcessing, nf.OccurrenceFailedTemp} {
			w.notice(r, entered("a", state))
			w.notice(r, entered("b", state))
		}
		w.notice(r, entered("a", nf.OccurrenceRollingBack))
		w.notice(r, entered("a", nf.OccurrenceRolledBack))
		w.notice(r, entered("b", nf.OccurrenceFailed))
		w.notice(r, nf.Notice{Kind: nf.NoticeDeletion, VNF: vnf("b")})
		w.later(time.Second)
		w.want("each VNF has its own order",
			"a VnfIdentifierCreationNotification", "a STARTING", "a PROCESSING", "a FAILED_TEMP", "a ROLLING_BACK", "a ROLLED_BACK",
			"b STARTING", "b PROCESSING", "b FAILED_TEMP", "b FAILED", "b VnfIdentifierDeletionNotification")
		left, err := r.notices.table.List(t.Context(), "")
		if len(left) > 0 || err != nil {
			t.Errorf("%d notices are left: %v", len(left), err)
		}
	})
}

// TestDocument compares a whole notification with the one that is expected.
func TestDocument(t *testing.T) {
	t.Parallel()
	failed := `"error":{"status":504,"detail":"cannot wait for VNF instance (one that you may not see): no time"}`
	const affected = `"affectedVnfcs":[{"id":"web-1","vduId":"VDU1","changeType":"ADDED","computeResource":{"resourceId":"web-1","vimLevelResourceType":"Deployment"}}]`
	for name, tc := range map[string]struct {
		reason string
		edit   func(*nf.VNFSubscription)
		state  nf.OccurrenceState
		status string
		path   string
		more   []string
	}{
		"Full":      {"the result says what has changed", nil, nf.OccurrenceFailedTemp, "RESULT", "v2", []string{`"verbosity":"FULL"`, affected, failed}},
		"Short":     {"a short one does not", func(s *nf.VNFSubscription) { s.Short = true }, nf.OccurrenceFailedTemp, "RESULT", "v2", []string{`"verbosity":"SHORT"`, failed}},
		"Start":     {"the start does not", nil, nf.OccurrenceProcessing, "START", "v2", []string{`"verbosity":"FULL"`}},
		"Version 1": {"version 1 has no verbosity", func(s *nf.VNFSubscription) { s.Interface = nf.VNFLifecycleV1 }, nf.OccurrenceFailedTemp, "RESULT", "v1", []string{affected, failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := map[string]string{"v1": "1.3.0", "v2": "2.0.0"}[tc.path]
			play(t, subscriber.Config{Version: version, Links: "https://vnfm.example"}, func(t *testing.T, w *world) {
				r := w.replica(func(cfg *notify.Config) {
					cfg.Endpoint = "https://vnfm.example"
					cfg.Status = func(nf.Kind) int { return 504 }
				})
				s := w.subscribe(r, tc.edit)
				w.start(r)
				w.to.Journal()
				if tc.state == nf.OccurrenceFailedTemp {
					w.notice(r, entered("a", nf.OccurrenceProcessing))
				}
				w.notice(r, entered("a", tc.state))
				w.later(time.Second)
				journal := w.to.Journal()
				if len(journal) == 0 {
					t.Fatal("nothing was sent")
				}
				last := journal[len(journal)-1]
				links := "https://vnfm.example/vnflcm/" + tc.path
				want := `{"id":"` + nf.UUIDOf(fmt.Sprintf("k8splugin.io/notification/%06d", w.written)) +
					`","notificationType":"VnfLcmOperationOccurrenceNotification","subscriptionId":"` + s.ID + `","timeStamp":"2000-01-01T00:00:00Z",` +
					`"_links":{"subscription":{"href":"` + links + `/subscriptions/` + s.ID + `"},"vnfInstance":{"href":"` + links + `/vnf_instances/a"},"vnfLcmOpOcc":{"href":"` + links + `/vnf_lcm_op_occs/occurrence-a"}},` +
					`"notificationStatus":"` + tc.status + `","operationState":"` + string(tc.state) + `","vnfInstanceId":"a","operation":"SCALE",` +
					strings.Join(append(tc.more, `"isAutomaticInvocation":false,"vnfLcmOpOccId":"occurrence-a"}`), ",")
				if d := cmp.Diff(decoded(t, want), decoded(t, last.Body)); d != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, d)
				}
				if got := last.Header.Get("Version"); got != version {
					t.Errorf("version %q", got)
				}
			})
		})
	}
}

// TestFilter notifies the subscriptions that select a notice.
func TestFilter(t *testing.T) {
	t.Parallel()
	all := []string{"a VnfIdentifierCreationNotification", "a STARTING", "a PROCESSING", "a COMPLETED"}
	for name, tc := range map[string]struct {
		reason string
		edit   func(*nf.VNFSubscription)
		want   []string
	}{
		"All":             {"no filter selects all", func(*nf.VNFSubscription) {}, all},
		"Project":         {"another project's VNFs are not there", func(s *nf.VNFSubscription) { s.Project = "other" }, nil},
		"Default project": {"no project is the default one", func(s *nf.VNFSubscription) { s.Project = nf.DefaultProject }, all},
		"Type":            {"a type of notifications", func(s *nf.VNFSubscription) { s.Filter.Types = []nf.NoticeKind{nf.NoticeCreation} }, all[:1]},
		"Operation":       {"it limits notices of occurrences alone", func(s *nf.VNFSubscription) { s.Filter.Operations = []nf.OccurrenceOperation{nf.OccurrenceHeal} }, all[:1]},
		"VNFD":            {"an id of a VNFD", func(s *nf.VNFSubscription) { s.Filter.VNFDs = []string{"x", "vnfd"} }, all},
		"Other VNFD":      {"another one", func(s *nf.VNFSubscription) { s.Filter.VNFDs = []string{"x"} }, nil},
		"VNF":             {"an id of a VNF", func(s *nf.VNFSubscription) { s.Filter.VNFs = []string{"a"} }, all},
		"Name":            {"a name of a VNF", func(s *nf.VNFSubscription) { s.Filter.Names = []string{"name-b"} }, nil},
		"Provider":        {"a provider", func(s *nf.VNFSubscription) { s.Filter.Products = []nf.VNFProduct{{Provider: "acme"}} }, all},
		"Product":         {"another product of the provider", func(s *nf.VNFSubscription) { s.Filter.Products = []nf.VNFProduct{{Provider: "acme", Product: "x"}} }, nil},
		"Software version": {"a version of the product", func(s *nf.VNFSubscription) {
			s.Filter.Products = []nf.VNFProduct{{Provider: "acme", Product: "router", SoftwareVersion: "1", Version: "2"}}
		}, all},
		"VNFD version": {"another version of the VNFD", func(s *nf.VNFSubscription) {
			s.Filter.Products = []nf.VNFProduct{{Provider: "acme", Product: "router", SoftwareVersion: "1", Version: "3"}}
		}, nil},
		"Both":   {"all lists must match", func(s *nf.VNFSubscription) { s.Filter.VNFs, s.Filter.Names = []string{"a"}, []string{"x"} }, nil},
		"Alarms": {"a subscription to alarms gets no other notices", func(s *nf.VNFSubscription) { s.Interface = nf.VNFFaults }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, subscriber.Config{}, func(_ *testing.T, w *world) {
				r := w.replica(func(cfg *notify.Config) { cfg.SkipTest = true })
				w.subscribe(r, tc.edit)
				w.start(r)
				w.notice(r, created("a"))
				for _, state := range []nf.OccurrenceState{nf.OccurrenceStarting, nf.OccurrenceProcessing, nf.OccurrenceCompleted} {
					w.notice(r, entered("a", state))
				}
				w.later(time.Second)
				w.want(tc.reason, tc.want...)
			})
		})
	}
}

// TestRetry repeats a notification without changing its order or its id.
func TestRetry(t *testing.T) {
	t.Parallel()
	play(t, subscriber.Config{}, func(t *testing.T, w *world) {
		r := w.replica(nil)
		w.subscribe(r, nil)
		w.start(r)
		w.to.Script(subscriber.Fault{Status: 503}, 1)
		w.to.Script(subscriber.Fault{Lost: true}, 1)
		w.notice(r, created("a"))
		w.notice(r, entered("a", nf.OccurrenceStarting))
		w.notice(r, created("b"))
		w.later(time.Minute)
		const creation = " VnfIdentifierCreationNotification"
		got := w.told()
		slices.Sort(got)
		if len(got) != 5 || !slices.Contains(got, "a STARTING") || !slices.Contains(got, "b"+creation) || !slices.Contains(got, "a"+creation) {
			t.Errorf("got %q", got)
		}
	})
}

// patiently makes a replica look rarely, so that days can be played.
func patiently(cfg *notify.Config) { cfg.Lease, cfg.Survey = time.Hour, time.Hour }

// TestAnswers counts every status of success as a delivery.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for status, dead := range map[int]bool{200: false, 202: false, 204: false, 404: true, 500: true} {
		play(t, subscriber.Config{}, func(t *testing.T, w *world) {
			r := w.replica(patiently)
			s := w.subscribe(r, nil)
			w.start(r)
			w.to.Script(subscriber.Fault{Status: status}, -1)
			w.notice(r, created("a"))
			w.later(48 * time.Hour)
			all, err := r.DeadLetters(t.Context())
			if err != nil || (len(all) == 1) != dead {
				t.Fatalf("%d: dead letters %v, %v", status, all, err)
			}
			if !dead {
				return
			}
			if all[0].VNF != "a" || all[0].Subscription != s.ID || all[0].LastStatus != status {
				t.Errorf("dead letter %+v", all[0])
			}
			w.to.Clear()
			w.to.Journal()
			if _, err := r.Resend(t.Context(), all[0].ID); err != nil {
				t.Error(err)
			}
			w.later(time.Minute)
			w.want("a dead letter is resent", "a VnfIdentifierCreationNotification")
		})
	}
}

// TestUnsubscribe sends nothing to a subscription that was deleted.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	play(t, subscriber.Config{}, func(t *testing.T, w *world) {
		r := w.replica(patiently)
		s := w.subscribe(r, nil)
		w.start(r)
		w.to.Script(subscriber.Fault{Status: 503}, -1)
		w.notice(r, created("a"))
		w.later(time.Minute)
		w.told()
		if err := r.Unsubscribe(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		w.to.Clear()
		w.notice(r, created("b"))
		w.later(24 * time.Hour)
		w.want("it was deleted")
		if err := r.Unsubscribe(t.Context(), s.ID); nf.KindOf(err) != nf.NotFound {
			t.Errorf("a second time: %v", err)
		}
		if dead, err := r.DeadLetters(t.Context()); len(dead) > 0 || err != nil {
			t.Errorf("dead letters: %v, %v", dead, err)
		}
	})
}

// TestDeathAtEveryWrite cuts a process off from the store before and after each of its
// writes, and lets another take over.
func TestDeathAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			for at, died := 0, true; died; at++ {
				play(t, subscriber.Config{}, func(t *testing.T, w *world) { died = dieDistributing(t, w, when, at) })
				if t.Failed() {
					t.Fatalf("after death at write %d", at)
				}
				if !died && at < 20 {
					t.Errorf("the process has written %d times, want at least 20", at)
				}
			}
		})
	}
}

// dieDistributing returns whether the process has died.
func dieDistributing(t *testing.T, w *world, when string, at int) bool {
	heir := w.replica(nil)
	for range 2 {
		w.subscribe(heir, nil)
	}
	var dead atomic.Bool
	first := w.replica(func(cfg *notify.Config) {
		cfg.KV = cut(w.kv, when, at, dead.Load, func() { dead.Store(true) })
	})
	stop := w.start(first)
	want := map[string]bool{}
	for _, id := range []string{"a", "b"} {
		w.notice(first, created(id))
		for _, state := range []nf.OccurrenceState{nf.OccurrenceStarting, nf.OccurrenceProcessing, nf.OccurrenceCompleted} {
			w.notice(first, entered(id, state))
			want[id+" "+string(state)] = true
		}
		w.later(3 * time.Second)
	}
	died := dead.Swap(true)
	stop()
	w.start(heir)
	w.later(40 * time.Second)
	ids, deliveries := map[string]bool{}, map[string]bool{}
	for _, e := range w.to.Journal() {
		if e.Method != "POST" {
			continue
		}
		id := e.Document["subscriptionId"].(string) + e.Document["id"].(string)
		ids[id], deliveries[e.Header.Get("X-K8splugin-Delivery")] = true, true
		if state, ok := e.Document["operationState"]; ok {
			delete(want, e.Document["vnfInstanceId"].(string)+" "+state.(string))
		}
	}
	if len(want) > 0 || len(ids) != 16 || len(deliveries) != 16 {
		t.Errorf("%d notifications in %d deliveries, want 16; missing: %v", len(ids), len(deliveries), want)
	}
	for _, prefix := range []string{"notices/", "vnfnotifications/pending/"} {
		for e, err := range w.kv.List(t.Context(), prefix, "") {
			t.Errorf("%s is left: %v", e.Key, err)
		}
	}
	return died
}

// TestStaleReplica does not let a replica distribute that another has replaced.
func TestStaleReplica(t *testing.T) {
	t.Parallel()
	play(t, subscriber.Config{}, func(t *testing.T, w *world) {
		r, other := w.replica(nil), w.replica(nil)
		w.subscribe(r, nil)
		w.start(r)
		w.start(other)
		for range 5 {
			w.notice(r, created("a"))
			w.notice(other, created("b"))
			w.later(2 * time.Second)
		}
		w.later(30 * time.Second)
		got := w.told()
		slices.Sort(got)
		if len(got) != 10 {
			t.Errorf("%d notifications, want 10: %q", len(got), got)
		}
		positions := store.NewTable[map[string]any](w.kv, "vnfnotifications/positions/", "position")
		if at, err := positions.Get(t.Context(), "occurrences"); err != nil || at["number"] != 10.0 {
			t.Errorf("the position is %v, %v", at, err)
		}
	})
}
