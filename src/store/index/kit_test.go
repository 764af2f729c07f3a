package index_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/index"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

const prefix = "instances/"

// instance returns a record that depends on a number only.
func instance(id string, n int) nf.Instance {
	return nf.Instance{
		ID: id, Region: []string{"east", "west"}[n%2], Project: []string{"a", "b", ""}[n%3], Name: fmt.Sprintf("n%d", n%5),
		State: []nf.InstanceState{nf.InstanceState("ready"), nf.InstanceState("failed")}[n/2%2], Labels: map[string]string{"tier": fmt.Sprint(n % 2)},
	}
}

// indexed is a database with an index, and the table of its instances.
type indexed struct {
	*index.Store

	instances store.Table[nf.Instance]
}

func over(t *testing.T, cfg index.Config) indexed {
	t.Helper()
	cfg.Tables = []index.Table{index.Of[nf.Instance](prefix)}
	if cfg.Changes != nil {
		cfg.Open = func(_ context.Context, e store.Entry) (store.Entry, error) { return e, nil }
	}
	s, err := index.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return indexed{s, store.NewTable[nf.Instance](s, prefix, "VNF instance")}
}

// run runs the index until the test ends.
func (x indexed) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// running returns a database with an index that is filled.
func running(t *testing.T, cfg index.Config) indexed {
	t.Helper()
	x := over(t, cfg)
	x.run(t)
	x.untilFilled(t)
	return x
}

func (x indexed) untilFilled(t *testing.T) {
	t.Helper()
	until(t, func() bool { return x.Status()["instances"].Filled })
}

// until waits until a condition is true.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for tries := 0; !done(); tries++ {
		if t.Context().Err() != nil {
			t.Fatal("the test has ended")
		}
		delay.For(t.Context(), delay.Doubled(time.Millisecond, time.Minute, tries), nil)
	}
}

// ids returns the ids of a sequence of instances.
func ids(t *testing.T, found iter.Seq2[nf.Instance, error]) []string {
	t.Helper()
	out := []string{}
	for in, err := range found {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, in.ID)
	}
	return out
}

// find returns the ids that the index finds.
func (x indexed) find(t *testing.T, c nf.Cursor) []string {
	t.Helper()
	found, ok := x.instances.Find(t.Context(), c)
	if !ok {
		t.Fatal("the index does not find anything")
	}
	return ids(t, found)
}

// scan returns the ids of the records that meet the conditions.
func (x indexed) scan(t *testing.T, c nf.Cursor) []string {
	t.Helper()
	out := []string{}
	for in, err := range x.instances.All(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Selects(in.Summary()) && (c.After == "" || in.ID > c.After != c.Backward && in.ID != c.After) {
			out = append(out, in.ID)
		}
	}
	if c.Backward {
		slices.Reverse(out)
	}
	return out
}

// questions are conditions of every kind.
func questions() map[string]nf.Cursor {
	attribute := func(name, value string) []nf.Attribute { return []nf.Attribute{{Name: name, Value: value}} }
	out := map[string]nf.Cursor{
		"region":   {Where: attribute(nf.AttributeRegion, "east")},
		"default":  {Where: attribute(nf.AttributeProject, nf.DefaultProject)},
		"state":    {Where: attribute(nf.AttributeState, "failed")},
		"label":    {Where: attribute(nf.AttributeLabel, "tier=1")},
		"two":      {Where: append(attribute(nf.AttributeRegion, "west"), attribute(nf.AttributeInstance, "n3")...)},
		"nothing":  {Where: attribute(nf.AttributeRegion, "north")},
		"scope":    {In: func(s nf.Scope) bool { return s.Project == "a" }},
		"combined": {In: func(s nf.Scope) bool { return s.Region == "east" }, Where: attribute(nf.AttributeState, "ready")},
	}
	for name, c := range out {
		c.After = "i05"
		out[name+" after"] = c
		c.Backward = true
		out[name+" before"] = c
		c.After = ""
		out[name+" backward"] = c
	}
	return out
}

// agrees fails unless the index finds what a scan finds.
func (x indexed) agrees(t *testing.T) {
	t.Helper()
	for name, c := range questions() {
		if diff := cmp.Diff(x.scan(t, c), x.find(t, c)); diff != "" {
			t.Fatalf("%s (-scan +index):\n%s", name, diff)
		}
	}
}

// shared is a database that reports its changes, as etcd does. A write is reported when
// deliver is called.
type shared struct {
	store.KV

	mu       sync.Mutex
	watchers map[*watcher]bool
	pending  []store.Change
	down     error // of new watches
}

// watcher is a watch in progress.
type watcher struct {
	changes []store.Change
	failed  error
	wake    delay.Signal
}

func newShared() *shared { return &shared{KV: memory.New(), watchers: map[*watcher]bool{}} }

func (s *shared) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, err := s.KV.Put(ctx, key, value, expected)
	if err == nil {
		s.pending = append(s.pending, store.Change{Entry: store.Entry{Key: key, Value: value, Revision: revision}})
	}
	return revision, err
}

func (s *shared) Delete(ctx context.Context, key string, expected store.Revision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.KV.Delete(ctx, key, expected); err != nil {
		return err
	}
	revision, err := s.KV.Put(ctx, "revision", nil, store.Any) // a deletion has a revision, too
	s.pending = append(s.pending, store.Change{Entry: store.Entry{Key: key, Revision: revision}, Deleted: true})
	return err
}

// deliver reports the first pending changes.
func (s *shared) deliver(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.pending))
	for w := range s.watchers {
		w.changes = append(w.changes, s.pending[:n]...)
		w.wake.Send()
	}
	s.pending = slices.Clone(s.pending[n:])
}

// interrupt ends all watches with an error, and forgets the pending changes.
func (s *shared) interrupt(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		w.failed = err
		w.wake.Send()
	}
	s.pending = nil
}

func (s *shared) Watch(ctx context.Context, of string) (iter.Seq2[store.Change, error], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	w := &watcher{wake: delay.NewSignal()}
	s.watchers[w] = true
	return func(yield func(store.Change, error) bool) {
		for ctx.Err() == nil {
			s.mu.Lock()
			changes, failed := w.changes, w.failed
			w.changes = nil
			if failed != nil {
				delete(s.watchers, w)
			}
			s.mu.Unlock()
			if failed != nil {
				yield(store.Change{}, failed)
				return
			}
			for _, c := range changes {
				if strings.HasPrefix(c.Key, of) && !yield(c, nil) {
					return
				}
			}
			select {
			case <-w.wake:
			case <-ctx.Done():
			}
		}
	}, nil
}

// insertTwelve inserts twelve instances into the table of a database.
func insertTwelve(t *testing.T, kv store.KV) {
	t.Helper()
	table := store.NewTable[nf.Instance](kv, prefix, "VNF instance")
	for n := range 12 {
		id := fmt.Sprintf("i%02d", n)
		must(t, table.Insert(t.Context(), id, instance(id, n)))
	}
}
