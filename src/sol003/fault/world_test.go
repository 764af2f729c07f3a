package fault_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003/fault"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// world is a region with one VNF, in virtual time.
type world struct {
	t  *testing.T
	kv store.KV

	mu       sync.Mutex
	vnf      nf.VNF
	instance *nf.Instance // nil: it is gone
	health   nf.InstanceHealth
	pods     []nf.Pod
	err      error // of reading pods
	reads    int   // of pods
	asked    int   // for the instance
}

var _ fault.Source = (*world)(nil)

// Unhealthy also names an instance that is not one of SOL003.
func (w *world) Unhealthy() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.instance == nil || w.health.State == nf.Healthy {
		return []string{"other"}
	}
	return []string{"other", w.instance.ID}
}

func (w *world) Instance(_ context.Context, id string) (nf.Instance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case id == "other":
		return nf.Instance{ID: "other", State: nf.Ready}, nil
	case w.instance == nil || id != w.instance.ID:
		w.asked++
		return nf.Instance{}, nf.E(nf.NotFound, "get", "instance "+id, nil)
	}
	w.asked++
	return *w.instance, nil
}

func (w *world) VNF(_ context.Context, id string) (nf.VNF, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id != w.vnf.ID {
		return nf.VNF{}, nf.E(nf.NotFound, "get", "VNF "+id, nil)
	}
	return w.vnf, nil
}

func (w *world) InstanceHealth(nf.Instance) nf.InstanceHealth {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health
}

func (w *world) Pods(context.Context, string) ([]nf.Pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	return slices.Clone(w.pods), w.err
}

// set changes the world.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func play(t *testing.T, act func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, kv: memory.New(), health: nf.InstanceHealth{State: nf.Healthy}, instance: &nf.Instance{ID: "v", State: nf.Ready, Region: "east"},
			vnf: nf.VNF{
				ID: "v", Project: "p", VIMs: map[string]nf.VIMConnection{"vim1": {Region: "east"}},
				Instantiated: &nf.InstantiatedVNF{Region: "east", VNFCs: []nf.VNFC{{VDU: "VDU1", Resource: "web-1"}, {VDU: "VDU1", Resource: "web-2"}}},
			},
		}
		w.pods = []nf.Pod{pod("web-1", "", nf.Current), pod("web-2", "", nf.Current)}
		act(t, w)
	})
}

func pod(name, reason string, status nf.Status) nf.Pod {
	ref := nf.Ref{Version: "v1", Kind: "Pod", Namespace: "n", Name: name}
	return nf.Pod{
		Health: nf.Health{Ref: ref, Status: status, Message: "it is " + string(status)}, Reason: reason, Node: "node-1",
		Workload: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "n", Name: "web"},
	}
}

// ill makes the first pod ill.
func (w *world) ill(reason string) {
	w.set(func() {
		w.health = nf.InstanceHealth{State: nf.Unhealthy, Message: "Deployment n/web is not ready"}
		w.pods = []nf.Pod{pod("web-1", reason, nf.InProgress), pod("web-2", "", nf.Current)}
	})
}

// run makes other pods run.
func (w *world) run(pods ...nf.Pod) {
	w.set(func() { w.pods = pods })
}

func (w *world) well() {
	w.set(func() {
		w.health = nf.InstanceHealth{State: nf.Healthy}
		w.pods = []nf.Pod{pod("web-1", "", nf.Current), pod("web-2", "", nf.Current)}
	})
}

func (w *world) watcher(kv store.KV) *fault.Watcher {
	w.t.Helper()
	out, err := fault.New(fault.Config{KV: kv, Source: w, NewID: rand.Text, Retention: 4 * time.Hour})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// start runs a watcher until stop is called, or the test ends.
func (w *world) start(of *fault.Watcher) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = of.Run(ctx) })
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

// told returns the notices since the last time, and drops them: "AlarmNotification CrashLoop
// MAJOR [VNFCs]".
func (w *world) told(of *fault.Watcher) []string {
	w.t.Helper()
	out := []string{}
	var ids []string
	for n, err := range of.NoticesFrom(w.t.Context(), nf.Cursor{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if n.VNF.ID != "v" || n.VNF.Project != "p" || n.Alarm.VNF != "v" {
			w.t.Errorf("a notice of VNF %+v", n.VNF)
		}
		ids = append(ids, n.ID)
		out = append(out, fmt.Sprint(n.Kind, " ", n.Alarm.Fault, " ", n.Alarm.Severity, " ", n.Alarm.VNFCs))
	}
	for _, id := range ids {
		if err := of.DropNotice(w.t.Context(), id); err != nil {
			w.t.Fatal(err)
		}
	}
	return out
}

func (w *world) want(of *fault.Watcher, reason string, want ...string) {
	w.t.Helper()
	if want == nil {
		want = []string{}
	}
	if d := cmp.Diff(want, w.told(of)); d != "" {
		w.t.Errorf("%s: -want +got:\n%s", reason, d)
	}
}

func (w *world) all(of *fault.Watcher) (out []nf.Alarm) {
	w.t.Helper()
	for a, err := range of.AlarmsFrom(w.t.Context(), nf.Cursor{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}
