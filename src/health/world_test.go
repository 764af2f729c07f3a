package health_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/health"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// world is what there is to see.
type world struct {
	mu          sync.Mutex
	instances   []nf.Instance
	err         error         // of reading them
	each        time.Duration // that reading one of them takes
	reads       int
	unreachable string // a region
	moved       string // a region that has an access of its own now
	refused     map[string]error
	censuses    map[string]int                // under way, by region and kind
	begun       int                           // censuses
	brief       bool                          // a census ends once it has reported all
	marks       map[string][]health.Mark      // that a census reports first, by region and kind
	news        map[string]chan<- health.Mark // that reaches the census under way
	ends        map[string]context.CancelFunc // of the census under way
}

func newWorld(instances ...nf.Instance) *world {
	return &world{
		instances: instances, refused: map[string]error{}, censuses: map[string]int{}, marks: map[string][]health.Mark{},
		news: map[string]chan<- health.Mark{}, ends: map[string]context.CancelFunc{},
	}
}

func (w *world) Instances(context.Context) iter.Seq2[nf.Instance, error] {
	return func(yield func(nf.Instance, error) bool) {
		w.mu.Lock()
		all, err, each := slices.Clone(w.instances), w.err, w.each
		w.reads++
		w.mu.Unlock()
		for _, in := range all {
			<-time.After(each)
			if !yield(in, nil) {
				return
			}
		}
		if err != nil {
			yield(nf.Instance{}, err)
		}
	}
}

func (w *world) Region(id string) nf.RegionState {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == w.unreachable {
		return nf.RegionState{Condition: nf.RegionUnreachable, Reason: "tcp"}
	}
	return nf.RegionState{Condition: nf.RegionAvailable}
}

var (
	errBroken    = &nf.Error{Kind: nf.Unreachable, Reason: "tcp", Op: "list", Subject: "objects", Err: errors.New("its own words")}
	errForbidden = &nf.Error{Kind: nf.Failed, Reason: "forbidden", Op: "list", Subject: "objects", Err: errors.New("its own words")}
)

// Canonical has one region for those whose names differ only by what follows a dash, except
// the one that has moved.
func (w *world) Canonical(region string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if region == w.moved {
		return region
	}
	first, _, _ := strings.Cut(region, "-")
	return first
}

func (w *world) Census(ctx context.Context, region string, kind nf.Ref) iter.Seq2[health.Mark, error] {
	return func(yield func(health.Mark, error) bool) {
		key := region + "/" + kind.Kind
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		news := make(chan health.Mark)
		w.mu.Lock()
		w.begun++
		first, err, brief := w.marks[key], w.refused[key], w.brief
		w.news[key], w.ends[key] = news, cancel
		w.censuses[key]++
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.censuses[key]--
		}()
		if err != nil {
			yield(health.Mark{}, err)
			return
		}
		for _, m := range append(slices.Clone(first), health.Mark{Synced: true}) {
			if !yield(m, nil) {
				return
			}
		}
		if brief {
			yield(health.Mark{}, errForbidden)
			return
		}
		for {
			select {
			case <-ctx.Done():
				yield(health.Mark{}, errBroken)
				return
			case m := <-news:
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// set changes the world.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// read returns how often the instances were read.
func (w *world) read() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}

func (w *world) tell(key string, m health.Mark) {
	w.mu.Lock()
	news := w.news[key]
	w.mu.Unlock()
	news <- m
}

// running returns a watcher that runs for as long as the test, and has seen all
// that there is.
func running(t *testing.T, w *world, cfg health.Config) *health.Watcher {
	t.Helper()
	cfg.Source = w
	watcher, err := health.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { _ = watcher.Run(ctx) })
	t.Cleanup(func() {
		stop()
		over.Wait()
	})
	synctest.Wait()
	return watcher
}

func item(kind, name string) nf.Item {
	return nf.Item{Ref: nf.Ref{Group: "apps", Version: "v1", Kind: kind, Namespace: "edge", Name: name}}
}

func instance(id, region string, items ...nf.Item) nf.Instance {
	return nf.Instance{ID: id, Region: region, State: nf.Ready, Inventory: items}
}

func mark(owner string, it nf.Item, status nf.Status) health.Mark {
	return health.Mark{Owner: owner, Key: it.Key(), Status: status}
}
