package aairegion_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aairegion"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/leader"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// regions are registered cloud regions. A probe of a new access fails while a cluster is
// away.
type regions struct {
	away atomic.Bool

	mu    sync.Mutex
	known map[string]nf.Region
	edits int
}

var _ aairegion.Regions = (*regions)(nil)

// Region implements aairegion.Regions.
func (r *regions) Region(_ context.Context, id string) (nf.Region, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.known[id]; ok {
		return found, nil
	}
	return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
}

// RegionsFrom implements aairegion.Regions.
func (r *regions) RegionsFrom(context.Context, nf.Cursor) iter.Seq2[nf.Region, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.known)
	return func(yield func(nf.Region, error) bool) {
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if !yield(all[id], nil) {
				return
			}
		}
	}
}

// Enlist implements aairegion.Regions.
func (r *regions) Enlist(_ context.Context, g nf.Region) (nf.Region, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.known[g.ID]; taken {
		return nf.Region{}, nf.E(nf.Exists, "register", "cloud region "+g.ID, nil)
	}
	r.known[g.ID] = g
	return g, nil
}

// UpdateRegion implements aairegion.Regions.
func (r *regions) UpdateRegion(_ context.Context, id string, edit func(*nf.Region) error) (nf.Region, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.known[id]
	before := g.Access
	if err := edit(&g); err != nil {
		return nf.Region{}, err
	}
	if !g.Access.Equal(before) && r.away.Load() {
		return nf.Region{}, nf.E(nf.Unreachable, "update", "cloud region "+id, nil)
	}
	r.known[id] = g
	r.edits++
	return g, nil
}

// world is an A&AI with importers, in a bubble of synctest.
type world struct {
	*testing.T

	kv        store.KV
	regions   *regions
	simulator *simulator.Simulator
	ids       atomic.Int64
	events    chan []byte // of the simulator, until they are received; at most 100 are kept

	mu      sync.Mutex
	results []aairegion.Result
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, kv: memory.New(), regions: &regions{known: map[string]nf.Region{}}, events: make(chan []byte, 100)}
		s, err := simulator.New(simulator.Config{Users: map[string]string{"u": "p"}, Publish: func(event []byte) {
			select {
			case w.events <- event:
			default:
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.simulator = s
		test(w)
		if v := s.Violations(); len(v) > 0 {
			t.Error(v)
		}
	})
}

// RoundTrip implements http.RoundTripper, without a network.
func (w *world) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	defer func() {
		if cut := recover(); cut != nil {
			resp, err = nil, io.ErrUnexpectedEOF
		}
	}()
	recorder := httptest.NewRecorder()
	w.simulator.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

const regionPath = "/cloud-infrastructure/cloud-regions/cloud-region/"

// as sends a request of another client to A&AI, and returns its response.
func (w *world) as(method, path, body string) *httptest.ResponseRecorder {
	w.Helper()
	out := w.simulator.Do(w.Context(), "test", method, path, body)
	if out.Code > 299 {
		w.Fatalf("%s %s: %d: %s", method, path, out.Code, out.Body)
	}
	w.simulator.Journal()
	return out
}

// region creates a cloud region in A&AI, with a system that has a kubeconfig.
func (w *world) region(owner, id, token string) {
	w.Helper()
	w.as("PUT", regionPath+owner+"/"+id, `{"cloud-type":"k8s","cloud-region-version":"1.0"}`)
	w.as("PUT", regionPath+owner+"/"+id+"/esr-system-info-list/esr-system-info/1",
		fmt.Sprintf(`{"user-name":"kubeconfig","password":%q,"system-type":"VIM","service-url":%q}`, token, server))
}

// rotate gives a region of the owner k8s another token in A&AI.
func (w *world) rotate(id, token string) {
	w.Helper()
	w.as("PATCH", regionPath+"k8s/"+id+"/esr-system-info-list/esr-system-info/1", fmt.Sprintf(`{"password":%q}`, token))
}

// remove deletes a region of the owner k8s from A&AI.
func (w *world) remove(id string) {
	w.Helper()
	object := w.as("GET", regionPath+"k8s/"+id, "").Body.String()
	_, version, _ := strings.Cut(object, `"resource-version":"`)
	version, _, _ = strings.Cut(version, `"`)
	w.as("DELETE", regionPath+"k8s/"+id+"?resource-version="+version, "")
}

// importer returns the importer of a replica.
func (w *world) importer(edit func(*aairegion.Config)) *aairegion.Importer {
	w.Helper()
	newID := func() string { return fmt.Sprint("r", w.ids.Add(1)) }
	client, err := aai.NewClient(aai.ClientConfig{
		URL: "http://aai", AppID: "k8splugin", Transport: w, NewID: newID,
		Credentials: func(context.Context) (string, nf.Secret) { return "u", nf.Secret("p") },
	})
	if err != nil {
		w.Fatal(err)
	}
	group, err := leader.New(leader.Config{KV: w.kv, Prefix: "aairegions/", Work: "test", NewID: newID})
	if err != nil {
		w.Fatal(err)
	}
	cfg := aairegion.Config{
		Inventory: client, Regions: w.regions, Rules: rules(), Lead: group.Run, Logger: slog.New(slog.DiscardHandler),
		Observe: func(r aairegion.Result) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.results = append(w.results, r)
		},
	}
	if edit != nil {
		edit(&cfg)
	}
	i, err := aairegion.New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	return i
}

// run runs an importer until the function that it returns is called.
func (w *world) run(i *aairegion.Importer) (end func()) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
}

// passes lets time pass.
func (w *world) passes(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.Context().Done():
	case <-timer.C:
	}
	synctest.Wait()
}

func (w *world) get(id string) nf.Region {
	w.Helper()
	g, err := w.regions.Region(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return g
}

// took returns the results since the last call.
func (w *world) took() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.results
	w.results = nil
	return fmt.Sprint(out)
}

func (w *world) wantToken(reason, id, token string) {
	w.Helper()
	if got := string(w.get(id).Access.Token); got != token {
		w.Errorf("%s: the token of %s is %q, want %q", reason, id, got, token)
	}
}
