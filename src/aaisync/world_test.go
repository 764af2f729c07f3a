package aaisync_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/multicloud-k8s/k8splugin/src/aaisync"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

const (
	tenantPath   = "/cloud-infrastructure/cloud-regions/cloud-region/k8s/r1/tenants/tenant/t1"
	resourcePath = tenantPath + "/k8s-resources/k8s-resource"
	vnfPath      = "/network/generic-vnfs/generic-vnf/V1"
	bulkPath     = "/bulk/single-transaction"
)

// facts is a source of subjects, each with one document.
type facts struct {
	vnf bool // the documents are related to a VNF

	mu       sync.Mutex
	versions map[string]string
	live     map[string]string
	busy     map[string]bool
	errors   map[string]error // by subject
	watches  atomic.Int64     // running
}

var (
	_ aaisync.Source    = (*facts)(nil)
	_ aaisync.Instances = (*facts)(nil)
)

// Subjects implements aaisync.Source.
func (f *facts) Subjects(context.Context) iter.Seq2[aaisync.Subject, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []aaisync.Subject
	for _, id := range slices.Sorted(maps.Keys(f.versions)) {
		if s, err := f.subject(id); err == nil {
			all = append(all, s)
		}
	}
	return func(yield func(aaisync.Subject, error) bool) {
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// Subject implements aaisync.Source.
func (f *facts) Subject(_ context.Context, id string) (aaisync.Subject, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.subject(id)
}

func (f *facts) subject(id string) (aaisync.Subject, error) {
	if f.versions[id] == "" {
		return aaisync.Subject{}, nf.E(nf.NotFound, "get", "subject", nil)
	}
	return aaisync.Subject{
		ID: id, Version: f.versions[id], Live: f.live[id], Busy: f.busy[id], Place: aai.Place{Owner: "k8s", Region: "r1", Tenant: "t1"},
	}, nil
}

// Watch implements aaisync.Source.
func (f *facts) Watch(ctx context.Context) {
	f.watches.Add(1)
	defer f.watches.Add(-1)
	<-ctx.Done()
}

// Documents implements aaisync.Source.
func (f *facts) Documents(_ context.Context, id string) (aaisync.Subject, []aai.Document, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	subject, err := f.subject(id)
	if err = errors.Join(err, f.errors[id]); err != nil {
		return subject, nil, err
	}
	version := subject.Version + f.live[id]
	d := aai.Document{Path: resourcePath + "/" + id, Attributes: map[string]any{
		"id": id, "name": version, "group": "", "version": "v1", "kind": "Pod", "namespace": "", "selflink": "x", "data-owner": "k8splugin",
	}}
	if f.vnf {
		d.Edges = []string{vnfPath}
	}
	return subject, []aai.Document{d}, nil
}

// set sets the version of a subject; it is removed if that is empty.
func (f *facts) set(id, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.versions[id] = version; version == "" {
		delete(f.versions, id)
	}
}

// see sets what the region has of a subject.
func (f *facts) see(id, live string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[id] = live
}

// occupy sets whether a subject is being changed.
func (f *facts) occupy(id string, busy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy[id] = busy
}

func (f *facts) fail(id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors[id] = err
}

// world is a service with A&AI, in a bubble of synctest.
type world struct {
	*testing.T

	kv        store.KV
	facts     *facts
	simulator *simulator.Simulator
	password  atomic.Value // a string
	ids       atomic.Int64
}

// inWorld runs a test in a world that has a tenant.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := simulator.New(simulator.Config{Users: map[string]string{"u": "p"}})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, kv: memory.New(), simulator: s, facts: &facts{versions: map[string]string{}, live: map[string]string{}, busy: map[string]bool{}, errors: map[string]error{}}}
		w.password.Store("p")
		w.as("PUT", strings.TrimSuffix(tenantPath, "/tenants/tenant/t1"), `{}`)
		w.as("PUT", tenantPath, `{"tenant-name":"x"}`)
		s.Journal()
		test(w)
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

// keeper returns a keeper of a replica.
func (w *world) keeper(edits ...func(*aaisync.Config)) *aaisync.Keeper {
	w.Helper()
	client, err := aai.NewClient(aai.ClientConfig{
		URL: "http://aai", AppID: "k8splugin", Transport: w, NewID: func() string { return "1" },
		Credentials: func(context.Context) (string, nf.Secret) { return "u", nf.Secret(fmt.Sprint(w.password.Load())) },
	})
	if err != nil {
		w.Fatal(err)
	}
	cfg := aaisync.Config{
		KV: w.kv, Source: w.facts, Target: aai.NewWriter(client, "k8splugin", 0), Logger: slog.New(slog.DiscardHandler),
		Lease: time.Minute,
		NewID: func() string { return fmt.Sprint("replica-", w.ids.Add(1)) },
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	k, err := aaisync.New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	return k
}

// run runs a keeper, and returns a function that stops it.
func (w *world) run(k *aaisync.Keeper) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := k.Run(ctx); err != nil {
			w.Error(err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// pass has time pass, and waits until nothing happens any more.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// as sends a request of another client.
func (w *world) as(method, path, body string) *httptest.ResponseRecorder {
	return w.simulator.Do(w.Context(), "MSO", method, path, body)
}

// names returns the names of the resources that A&AI has, which are their versions.
func (w *world) names() (out []string) {
	w.Helper()
	var doc map[string][]map[string]any
	if err := json.Unmarshal(w.as("GET", tenantPath+"/k8s-resources", "").Body.Bytes(), &doc); err != nil {
		return nil // it is an error
	}
	for _, o := range doc["k8s-resource"] {
		out = append(out, fmt.Sprint(o["name"]))
	}
	return slices.Sorted(slices.Values(out))
}

// delete deletes an object as another client.
func (w *world) delete(path string) {
	w.Helper()
	var doc map[string]any
	if err := json.Unmarshal(w.as("GET", path, "").Body.Bytes(), &doc); err != nil {
		w.Fatal(err)
	}
	if got := w.as("DELETE", fmt.Sprintf("%s?resource-version=%v", path, doc["resource-version"]), "").Code; got != http.StatusNoContent {
		w.Fatalf("cannot delete %s: %d", path, got)
	}
}

// requests returns the numbers of requests and of transactions that were executed,
// since the last call.
func (w *world) requests() (all, transactions int) {
	for _, e := range w.simulator.Journal() {
		if e.AppID != "k8splugin" {
			continue
		}
		all++
		if e.Status == http.StatusCreated {
			transactions++
		}
	}
	return all, transactions
}

// rows returns the keys of the store with a prefix.
func (w *world) rows(prefix string) (n int) {
	w.Helper()
	for _, err := range store.NewTable[map[string]any](w.kv, prefix, "row").All(w.Context(), "") {
		if err != nil {
			w.Fatal(err)
		}
		n++
	}
	return n
}

// state returns the state of a subject, or fails.
func (w *world) state(k *aaisync.Keeper, id string) aaisync.State {
	w.Helper()
	s, err := k.State(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

var errUnreachable = errors.New("the region is unreachable")
