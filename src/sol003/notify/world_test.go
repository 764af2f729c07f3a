package notify_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/simulator/subscriber"
	"github.com/multicloud-k8s/k8splugin/src/sol003/notify"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

// notices is a stand-in for a source.
type notices struct {
	table  store.Table[nf.Notice]
	signal delay.Signal
}

var _ notify.Source = notices{}

func newNotices(kv store.KV) notices {
	return notices{store.NewTable[nf.Notice](kv, "notices/", "notice"), delay.NewSignal()}
}

// NoticesFrom implements notify.Source.
func (n notices) NoticesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Notice, error] {
	return n.table.From(ctx, "", from.After)
}

// DropNotice implements notify.Source.
func (n notices) DropNotice(ctx context.Context, id string) error {
	return nf.IgnoreNotFound(n.table.Delete(ctx, id))
}

// Noticed implements notify.Source.
func (n notices) Noticed() <-chan struct{} { return n.signal }

// world is a store and a subscriber, in virtual time.
type world struct {
	t       *testing.T
	kv      store.KV
	to      *subscriber.Simulator
	written int // notices
}

func play(t *testing.T, cfg subscriber.Config, act func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if cfg.Version == "" {
			cfg.Version = "2.0.0"
		}
		w := &world{t: t, kv: memory.New(), to: subscriber.New(cfg)}
		act(t, w)
		for _, wrong := range w.to.Violations() {
			t.Errorf("violation: %s", wrong)
		}
	})
}

// replica is a notifier with its source.
type replica struct {
	*notify.Notifier

	notices notices
}

func (w *world) replica(edit func(*notify.Config)) *replica {
	w.t.Helper()
	cfg := notify.Config{Via: w.to, Config: outbox.Config{KV: w.kv, NewID: rand.Text}}
	if edit != nil {
		edit(&cfg)
	}
	n := newNotices(cfg.KV)
	cfg.Sources = map[string]notify.Source{"occurrences": n}
	out, err := notify.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return &replica{out, n}
}

// start runs a replica until stop is called, or the test ends.
func (w *world) start(r *replica) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	w.t.Cleanup(stop)
	synctest.Wait()
	return stop
}

// later lets time pass.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	delay.For(w.t.Context(), d, nil)
	synctest.Wait()
}

const callback = "http://nfvo.example" + subscriber.Callback

// subscribe subscribes to everything, unless the subscription is edited.
func (w *world) subscribe(r *replica, edit func(*nf.VNFSubscription)) nf.VNFSubscription {
	w.t.Helper()
	s := nf.VNFSubscription{Interface: nf.VNFLifecycle, Callback: callback}
	if edit != nil {
		edit(&s)
	}
	out, err := r.Subscribe(w.t.Context(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// notice stores a notice as the ledger does.
func (w *world) notice(r *replica, n nf.Notice) {
	w.t.Helper()
	w.written++
	n.ID, n.Time = fmt.Sprintf("%06d", w.written), time.Now()
	if err := newNotices(w.kv).table.Insert(w.t.Context(), n.ID, n); err != nil {
		w.t.Fatal(err)
	}
	r.notices.signal.Send()
}

func vnf(id string) nf.VNF {
	return nf.VNF{ID: id, Name: "name-" + id, VNFD: nf.VNFD{ID: "vnfd", Provider: "acme", Product: "router", SoftwareVersion: "1", Version: "2"}}
}

func created(id string) nf.Notice { return nf.Notice{Kind: nf.NoticeCreation, VNF: vnf(id)} }

func entered(id string, state nf.OccurrenceState) nf.Notice {
	o := nf.Occurrence{ID: "occurrence-" + id, VNF: id, Operation: nf.OccurrenceScale, State: state}
	if state.Final() || state == nf.OccurrenceFailedTemp {
		o.VNFCs = []nf.AffectedVNFC{{VNFC: nf.VNFC{VDU: "VDU1", Resource: "web-1", Workload: "Deployment"}, Change: nf.VNFCAdded}}
	}
	if state == nf.OccurrenceFailedTemp || state == nf.OccurrenceFailed {
		other := nf.Mention("other")
		o.Failure = &nf.Failure{Kind: nf.Timeout, Message: "cannot wait for " + other.Message + ": no time", Mentions: other.Mentions}
	}
	return nf.Notice{Kind: nf.NoticeOccurrence, VNF: vnf(id), Occurrence: &o}
}

// told returns what the subscriber has got since the last time: "vnf type state", with the
// status unless it is 204.
func (w *world) told() []string {
	out := []string{}
	for _, e := range w.to.Journal() {
		if e.Path != subscriber.Callback || e.Method != "POST" {
			continue
		}
		text := fmt.Sprint(e.Document["vnfInstanceId"], " ", e.Document["notificationType"])
		if state, ok := e.Document["operationState"]; ok {
			text = fmt.Sprint(e.Document["vnfInstanceId"], " ", state)
		}
		if e.Status != 204 {
			text += fmt.Sprint(" ", e.Status)
		}
		out = append(out, text)
	}
	return out
}

var errCut = errors.New("the process is cut off")

// cut returns a store that fails from a write on, before or after it is carried out.
func cut(kv store.KV, when string, at int, died func() bool, die func()) store.KV {
	writes := 0
	var mu sync.Mutex
	fail := func(now string) func(method, key string) error {
		return func(method, key string) error {
			mu.Lock()
			defer mu.Unlock()
			if counted := when == now && (method == "Put" || method == "Delete") && !isLease(key); counted && !died() {
				if writes++; writes > at {
					die()
				}
			}
			if died() {
				return nf.E(nf.Unreachable, "use", "the store", errCut)
			}
			return nil
		}
	}
	return storetest.Failing{KV: kv, Fail: fail("before"), Lose: fail("after")}
}
