package performance_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003/performance"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// world is a region with a VNF of two pods, and callbacks that accept everything, in
// virtual time.
type world struct {
	t  *testing.T
	kv store.KV

	mu    sync.Mutex
	vnf   nf.VNF
	pods  []nf.PodUsage
	err   error // of the usage
	reads []time.Duration
	began time.Time
}

var (
	_ performance.Source    = (*world)(nil)
	_ performance.Callbacks = callbacks{}
)

func (w *world) VNF(_ context.Context, id string) (nf.VNF, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id != w.vnf.ID {
		return nf.VNF{}, nf.E(nf.NotFound, "get", "VNF "+id, nil)
	}
	return w.vnf, nil
}

func (w *world) Usage(context.Context, string) ([]nf.PodUsage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads = append(w.reads, time.Since(w.began))
	return slices.Clone(w.pods), w.err
}

// set changes the world.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// use makes the pods use a part of one core each, and no memory.
func (w *world) use(cpu ...float64) {
	w.set(func() {
		w.pods = nil
		for i, used := range cpu {
			w.pods = append(w.pods, nf.PodUsage{
				Pod: fmt.Sprintf("web-%d", i+1), CPU: nf.ResourceUsage{Used: used, Allotted: 1}, Memory: nf.ResourceUsage{Allotted: 100},
			})
		}
	})
}

// callbacks are stored as the notifier does.
type callbacks struct {
	table store.Table[nf.VNFSubscription]
}

func newCallbacks(kv store.KV) callbacks {
	return callbacks{store.NewTable[nf.VNFSubscription](kv, "callbacks/", "subscription")}
}

func (c callbacks) CallbackOp(_ context.Context, s nf.VNFSubscription) (store.Op, error) {
	if s.Callback == "http://deaf/" {
		return store.Op{}, nf.E(nf.Failed, "test", "the callback", nil)
	}
	return c.table.PutOp(s.ID, s)
}

func (c callbacks) Subscription(ctx context.Context, id string) (nf.VNFSubscription, error) {
	return c.table.Get(ctx, id)
}

func (c callbacks) SubscriptionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.VNFSubscription, error] {
	return c.table.After(ctx, "", from)
}

func (c callbacks) Unsubscribe(ctx context.Context, id string) error { return c.table.Delete(ctx, id) }

func play(t *testing.T, act func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, kv: memory.New(), began: time.Now(), vnf: nf.VNF{
			ID: "v", Project: "p", Instantiated: &nf.InstantiatedVNF{VNFCs: []nf.VNFC{{VDU: "VDU1", Resource: "web-1"}, {VDU: "VDU1", Resource: "web-2"}}},
		}}
		w.use(0.5, 0.1)
		act(t, w)
	})
}

func (w *world) meter(kv store.KV) *performance.Meter {
	w.t.Helper()
	m, err := performance.New(performance.Config{KV: kv, Source: w, Callbacks: newCallbacks(kv), NewID: rand.Text})
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// start runs a meter until stop is called, or the test ends.
func (w *world) start(m *performance.Meter) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = m.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	w.t.Cleanup(stop)
	synctest.Wait()
	return stop
}

func (w *world) later(d time.Duration) {
	w.t.Helper()
	delay.For(w.t.Context(), d, nil)
	synctest.Wait()
}

// job is a job that measures the VNF every 10 s, and reports every 30 s.
func job(metrics ...string) nf.PMJob {
	return nf.PMJob{
		PMTarget:   nf.PMTarget{Project: "p", Object: nf.PMVNF, VNFs: []string{"v"}, Metrics: metrics, Callback: "http://nfvo/"},
		Collection: 10 * time.Second, Reporting: 30 * time.Second,
	}
}

func (w *world) create(m *performance.Meter, j nf.PMJob) nf.PMJob {
	w.t.Helper()
	made, err := m.CreateJob(w.t.Context(), j, nf.CallbackAuth{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// reported returns the values of the kept reports of a job: "metric.object=value", after
// the end of the period.
func (w *world) reported(m *performance.Meter, id string) []string {
	w.t.Helper()
	j, err := m.Job(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	out := []string{}
	for _, ref := range j.Reports {
		r, err := m.Report(w.t.Context(), id, ref.ID)
		if err != nil || r.Ready != ref.Ready {
			w.t.Fatalf("report %s: %+v: %v", ref.ID, r, err)
		}
		text := ref.Ready.Sub(w.began).String()
		for _, e := range r.Entries {
			text += fmt.Sprintf(" %s=%g", e.Name(), e.Value)
		}
		out = append(out, text)
	}
	return out
}

// told returns the notices, and drops them: "kind VNF report direction value".
func (w *world) told(m *performance.Meter) []string {
	w.t.Helper()
	out, ids := []string{}, []string{}
	for n, err := range m.NoticesFrom(w.t.Context(), nf.Cursor{}) {
		if err != nil || n.VNF.ID != "v" || n.VNF.Project != "p" {
			w.t.Fatalf("a notice %+v: %v", n, err)
		}
		ids = append(ids, n.ID)
		text := string(n.Kind)
		if n.Kind == nf.NoticeCrossed {
			text = fmt.Sprintf("%s up=%t %s=%g", n.Time.Sub(w.began), n.PM.Up, n.PM.Entry.Name(), n.PM.Entry.Value)
		}
		out = append(out, text)
	}
	for _, id := range ids {
		if err := m.DropNotice(w.t.Context(), id); err != nil {
			w.t.Fatal(err)
		}
	}
	return out
}

func (w *world) want(reason string, got []string, want ...string) {
	w.t.Helper()
	if want == nil {
		want = []string{}
	}
	if d := cmp.Diff(want, got); d != "" {
		w.t.Errorf("%s: -want +got:\n%s", reason, d)
	}
}
