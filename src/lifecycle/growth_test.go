package lifecycle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// stubCluster is a region in which everything works at once. It keeps nothing,
// so that the test can have as many instances as it likes.
type stubCluster struct {
	*fakeCluster

	calls atomic.Int64
}

func (c *stubCluster) Preflight(_ context.Context, _ nf.Subject, bounds nf.Bounds, objects []*unstructured.Unstructured) (int, error) {
	c.calls.Add(1)
	for _, obj := range objects {
		obj.SetNamespace(bounds.Namespace)
	}
	return 0, nil
}

func (c *stubCluster) DryRun(context.Context, nf.Subject, []*unstructured.Unstructured, []string) ([]nf.Ref, error) {
	c.calls.Add(1)
	return nil, nil
}

func (c *stubCluster) Apply(_ context.Context, _ nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	c.calls.Add(1)
	var out []nf.Change
	for _, obj := range objects {
		out = append(out, nf.Change{Ref: nf.RefOf(obj), Action: nf.Created})
	}
	return out, nil
}

func (c *stubCluster) ApplyNew(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return c.Apply(ctx, owner, objects)
}

func (c *stubCluster) EnsureNamespace(context.Context, string, string) (nf.Namespace, error) {
	c.calls.Add(1)
	return nf.Namespace{}, nil
}

func (c *stubCluster) Watch(_ context.Context, _ nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error] {
	c.calls.Add(1)
	return func(yield func(nf.Health, error) bool) {
		for _, target := range targets {
			if !yield(nf.Health{Ref: target.Ref, Status: nf.Current}, nil) {
				return
			}
		}
	}
}

// countingStore counts the requests to a store, and their bytes.
type countingStore struct {
	store.KV

	mu      sync.Mutex
	calls   map[string]int // by method and table
	bytes   int            // read and written
	largest map[string]int // value, by table
}

func (cs *countingStore) record(method, key string, size int) {
	table, _, _ := strings.Cut(key, "/")
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.calls[method+" "+table]++
	cs.bytes += size
	cs.largest[table] = max(cs.largest[table], size)
}

// uncounted is the key of a context whose reads are those of the test.
type uncounted struct{}

func (cs *countingStore) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := cs.KV.Get(ctx, key)
	if ctx.Value(uncounted{}) == nil {
		cs.record("get", key, len(e.Value))
	}
	return e, err
}

func (cs *countingStore) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	cs.record("put", key, len(value))
	return cs.KV.Put(ctx, key, value, expected)
}

func (cs *countingStore) Delete(ctx context.Context, key string, expected store.Revision) error {
	cs.record("delete", key, 0)
	return cs.KV.Delete(ctx, key, expected)
}

// Write implements store.Writer: what it writes together counts as one call.
func (cs *countingStore) Write(ctx context.Context, ops []store.Op) ([]store.Revision, error) {
	cs.record("write", "", 0)
	revisions := make([]store.Revision, len(ops))
	for i, op := range ops {
		r, err := store.Write(ctx, cs.KV, []store.Op{op})
		if err != nil {
			return nil, &store.WriteError{Index: i, Err: err}
		}
		revisions[i] = r[0]
		table, _, _ := strings.Cut(op.Key, "/")
		cs.mu.Lock()
		cs.bytes += len(op.Value)
		cs.largest[table] = max(cs.largest[table], len(op.Value))
		cs.mu.Unlock()
	}
	return revisions, nil
}

func (cs *countingStore) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range cs.KV.List(ctx, prefix, start) {
			cs.record("list", prefix, len(e.Value))
			if !yield(e, err) {
				return
			}
		}
	}
}

// count is what some instances have cost together.
type count struct {
	calls, requests, bytes int
}

// field is an engine with a real catalog, whose store and region are counted.
type field struct {
	*lifecycle.Engine

	ledger  *countingStore
	region  *stubCluster
	catalog *catalog.Catalog
}

// newField has the engine use the counted store through a decorator.
func newField(t *testing.T, decorate func(store.KV) store.KV) *field {
	t.Helper()
	f := &field{
		ledger: &countingStore{KV: memory.New(), calls: map[string]int{}, largest: map[string]int{}},
		region: &stubCluster{fakeCluster: newFakeCluster()},
	}
	kv := decorate(f.ledger)
	var ids atomic.Int64
	newID := func() string { return fmt.Sprintf("id%06d", ids.Add(1)) }
	renderers := map[string]render.Renderer{"manifest": listRenderer{}}
	var err error
	f.catalog, err = catalog.New(catalog.Config{
		KV: kv, Limits: render.DefaultLimits(), Renderers: renderers, NewID: newID,
		Probe: func(context.Context, nf.Access) (nf.Probe, error) { return nf.Probe{Version: "v1.37.1"}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	work, err := operation.New(operation.Config{KV: kv, NewID: newID})
	if err != nil {
		t.Fatal(err)
	}
	f.Engine, err = lifecycle.New(lifecycle.Config{
		KV: kv, Catalog: f.catalog, Renderers: renderers, NewID: newID, Workers: work, Places: 32,
		Open: func(context.Context, string, string) (lifecycle.Cluster, error) { return f.region, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := f.catalog.Register(t.Context(), nf.Region{ID: "east", Access: nf.Access{Server: "https://there", Token: nf.Secret("x")}})
	_, _, err2 := f.catalog.Upload(t.Context(), nf.Package{ID: "one"}, tarOf(map[string]string{"list": "a/b"}))
	if err := errors.Join(err1, err2, work.Join(t.Context())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- work.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

func tarOf(files map[string]string) io.Reader {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}) // a buffer takes all
		_, _ = io.WriteString(w, content)
	}
	_ = errors.Join(w.Close(), zipped.Close())
	return &b
}

// grow makes so many instances, some at a time, and returns what they have cost.
func (f *field) grow(t *testing.T, n int) count {
	t.Helper()
	before := f.count()
	work := make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range work {
				op, err := f.Instantiate(t.Context(), nf.InstantiateRequest{Region: "east", Namespace: "shared", Spec: nf.Spec{Package: "one"}})
				if err != nil {
					t.Error(err)
					continue
				}
				for now, err := range f.Follow(t.Context(), op.ID) {
					if err != nil {
						t.Error(err)
					}
					op = now
				}
				if op.State != nf.Succeeded {
					t.Errorf("%s: %+v", op.State, op.Failure)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	workers.Wait()
	after := f.count()
	return count{after.calls - before.calls, after.requests - before.requests, after.bytes - before.bytes}
}

func (f *field) count() count {
	f.ledger.mu.Lock()
	defer f.ledger.mu.Unlock()
	c := count{requests: int(f.region.calls.Load()), bytes: f.ledger.bytes}
	for what, n := range f.ledger.calls {
		if !strings.Contains(what, "replicas") { // the lease is renewed by the clock
			c.calls += n
		}
	}
	return c
}

// growth is how many instances TestGrowth makes. The race detector makes each of
// them ten times as dear, so the full number is for a run without it.
var growth = flag.Int("growth", 2000, "instances that TestGrowth makes")

// TestGrowth makes very many instances of one package, in one namespace of one
// region. The last hundred cost what the first hundred did, and no record has
// grown with their number.
func TestGrowth(t *testing.T) {
	const (
		sample  = 100
		largest = 8 << 10 // bytes of any record
	)
	f := newField(t, func(kv store.KV) store.KV { return kv })
	f.grow(t, sample) // the first ones meet empty caches
	first := f.grow(t, sample)
	f.grow(t, *growth-4*sample)
	last, again := f.grow(t, sample), f.grow(t, sample)
	// The search for expired records, once a minute, is in one of them at most.
	last = count{min(last.calls, again.calls), min(last.requests, again.requests), min(last.bytes, again.bytes)}
	t.Logf("instances %d to %d: %+v; the last %d of %d: %+v", sample, 2*sample, first, sample, *growth, last)
	for what, pair := range map[string][2]int{
		"calls to the store": {first.calls, last.calls}, "requests to the region": {first.requests, last.requests}, "bytes read and written": {first.bytes, last.bytes},
	} {
		// Operations that meet repeat a write: a little more or less is chance.
		if was, is := pair[0], pair[1]; is > was+was/20 {
			t.Errorf("%s: %d for %d instances, and %d at %d", what, was, sample, is, *growth)
		}
	}
	f.ledger.mu.Lock() // the replica still reads the last claims, and renews its lease
	records := maps.Clone(f.ledger.largest)
	f.ledger.mu.Unlock()
	for table, size := range records {
		if size > largest {
			t.Errorf("the largest record of %s has %d bytes", table, size)
		}
	}
	if err := f.catalog.RemovePackage(t.Context(), "one"); nf.KindOf(err) != nf.Conflict || len(nf.ViolationsOf(err)) > 30 {
		t.Errorf("a package of so many instances is not removed, and a refusal names some of them: %d", len(nf.ViolationsOf(err)))
	}
}
