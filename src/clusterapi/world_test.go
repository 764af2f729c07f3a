package clusterapi_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/clusterapi"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

// world is everything outside a registrar: regions, the cluster and the region that has
// its Cluster, and what was handed over. It dies at a call on request. What the real ones
// do is tested with real API servers.
type world struct {
	mu      sync.Mutex // protects all fields while a registrar runs
	regions map[string]nf.Region
	parent  map[string]map[string]any // objects by "Kind name"
	cluster map[string]string         // owners of objects by "Kind name"
	sent    map[int]outbox.Request
	dead    map[string]outbox.Delivery
	users   []nf.Subject
	away    bool // the cluster does not answer
	reads   int  // of the Secret
	ca      string
	moved   *world // its parent is the region "other"

	calls []string // that change something, in order
	dies  int      // the number of the call that fails, from 1; 0: none
	late  bool     // it fails after its effect
}

var errDead = errors.New("the process is dead")

func newWorld() *world {
	w := &world{regions: map[string]nf.Region{}, parent: map[string]map[string]any{}, cluster: map[string]string{}, sent: map[int]outbox.Request{}, dead: map[string]outbox.Delivery{}}
	w.parent["Cluster edge"] = map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "status": map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}}}
	w.rotate("admin-1")
	return w
}

func (w *world) rotate(text string) {
	w.parent["Secret edge-kubeconfig"] = map[string]any{"data": map[string]any{"value": base64.StdEncoding.EncodeToString([]byte(text))}}
}

// change makes a call that changes something, unless the process dies before or after it.
func (w *world) change(call string, do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	if len(w.calls) == w.dies && !w.late {
		return errDead
	}
	err := do()
	if len(w.calls) == w.dies {
		return errDead
	}
	return err
}

func (w *world) Region(_ context.Context, id string) (nf.Region, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, is := w.regions[id]
	if !is {
		return r, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	}
	return r, nil
}

func (w *world) RegionsFrom(context.Context, nf.Cursor) iter.Seq2[nf.Region, error] {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Collect(maps.Values(w.regions))
	return func(yield func(nf.Region, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (w *world) Register(_ context.Context, r nf.Region) (nf.Region, error) {
	return r, w.change("register", func() error {
		if _, is := w.regions[r.ID]; is {
			return nf.E(nf.Exists, "register", "cloud region "+r.ID, nil)
		}
		w.regions[r.ID] = r
		return nil
	})
}

func (w *world) UpdateRegion(_ context.Context, id string, edit func(*nf.Region) error) (r nf.Region, err error) {
	err = w.change("update", func() error {
		r = w.regions[id]
		if err := edit(&r); err != nil {
			return err
		}
		w.regions[id] = r
		return nil
	})
	return r, err
}

func (w *world) RemoveRegion(_ context.Context, id string) error {
	return w.change("remove", func() error {
		if len(w.users) > 0 {
			return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: id, Reason: nf.ReasonHeld}
		}
		delete(w.regions, id)
		return nil
	})
}

func (w *world) Users(context.Context, nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		for _, u := range w.users {
			if !yield(u, nil) {
				return
			}
		}
	}
}

func (w *world) Put(_ context.Context, r outbox.Request) (outbox.Delivery, error) {
	return outbox.Delivery{}, w.change("put", func() error {
		if _, is := w.sent[r.Number]; is {
			return nf.E(nf.Exists, "put", "kubeconfig", nil)
		}
		w.sent[r.Number] = r
		return nil
	})
}

// last returns the request that was put last.
func (w *world) last() outbox.Request {
	return w.sent[slices.Max(append(slices.Collect(maps.Keys(w.sent)), 0))]
}

func (w *world) DeadLetters(context.Context) ([]outbox.Delivery, error) {
	return slices.Collect(maps.Values(w.dead)), nil
}

func (w *world) DeadLetter(_ context.Context, id string) (outbox.Delivery, error) {
	d, is := w.dead[id]
	if !is {
		return d, nf.E(nf.NotFound, "get", "dead letter "+id, nil)
	}
	return d, nil
}

func (w *world) Resend(_ context.Context, d outbox.Delivery) (outbox.Delivery, error) {
	delete(w.dead, d.ID)
	return d, nil
}

func (w *world) Discard(_ context.Context, id string) error {
	delete(w.dead, id)
	return nil
}

// parentOf reads the region with the Cluster.
type parentOf struct{ w *world }

func (p parentOf) Lookup(_ context.Context, ref nf.Ref) (map[string]any, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if ref.Kind == "Secret" {
		p.w.reads++
	}
	object := p.w.parent[ref.Kind+" "+ref.Name]
	if version, is := object["apiVersion"]; is && version != ref.APIVersion() {
		return nil, nil
	}
	return object, nil
}

// clusterOf is the cluster as an administrator sees it.
type clusterOf struct{ w *world }

func (c clusterOf) Lookup(_ context.Context, ref nf.Ref) (map[string]any, error) {
	if _, is := c.w.cluster[ref.Kind+" "+ref.Name]; !is {
		return nil, nil
	}
	return map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte("token"))}}, nil
}

func (c clusterOf) Apply(_ context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return nil, c.w.change("apply "+objects[0].GetKind(), func() error {
		for _, obj := range objects {
			if nf.OwnerOf(obj.GetLabels()) != owner {
				return fmt.Errorf("%s has no owner", obj.GetName())
			}
			c.w.cluster[obj.GetKind()+" "+obj.GetName()] = owner.String()
		}
		return nil
	})
}

func (c clusterOf) Delete(_ context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	return nil, c.w.change("delete", func() error {
		for _, ref := range refs {
			if key := ref.Kind + " " + ref.Name; c.w.cluster[key] == owner.String() {
				delete(c.w.cluster, key)
			}
		}
		return nil
	})
}

func (w *world) registrar(t *testing.T) *clusterapi.Registrar {
	t.Helper()
	r, err := clusterapi.New(clusterapi.Config{
		Regions: w, Outbox: w,
		Parse: func(kubeconfig nf.Secret) (nf.Access, error) {
			return nf.Access{Server: "https://internal", CA: []byte(w.ca), Certificate: kubeconfig, Key: kubeconfig, Kubeconfig: kubeconfig}, nil
		},
		Open: func(_ context.Context, region, _ string) (clusterapi.Reader, error) {
			if w.moved != nil && region == "other" {
				return parentOf{w.moved}, nil
			}
			return parentOf{w}, nil
		},
		Visit: func(_ nf.Access, use func(clusterapi.Workload) error) error {
			if w.away {
				return nf.E(nf.Unreachable, "reach", "the cluster", nil)
			}
			return use(clusterOf{w})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func held(context.Context) error { return nil }

func parent(edit ...func(*nf.WorkloadCluster)) nf.Parent {
	p := nf.Parent{Region: "east", Project: "default", Instance: "vnf-1", Workload: nf.WorkloadCluster{Cluster: "edge", Namespace: "ns", Region: "edge-1", HandOver: "https://receiver"}}
	for _, e := range edit {
		e(&p.Workload)
	}
	return p
}
