package operation_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// kind is the kind of the operations in these tests.
const kind = "thing"

// lease is how long a replica may go without a heartbeat.
const lease = 9 * time.Second

// group is a store with the replicas on it.
type group struct {
	kv store.KV

	mu     sync.Mutex
	number int
}

func (g *group) id() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.number++
	return fmt.Sprintf("id-%03d", g.number)
}

// replica is one process of the group.
type replica struct {
	*operation.Workers

	group *group
	cut   *cut
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	begun   []string // operations that were performed, in order
	tokens  map[string]string
	ends    map[string]error         // why an operation stopped
	release map[string]chan struct{} // lets an operation end
	failing string                   // an operation that cannot go on
}

// cut is a store that can become unreachable for one replica.
type cut struct {
	store.KV

	mu          sync.Mutex
	unreachable bool
	unlisted    bool // only lists fail
}

var errAway = nf.E(nf.Unreachable, "use", "the store", nil)

func (c *cut) set(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unreachable = away
}

// setLists makes lists fail, or not.
func (c *cut) setLists(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unlisted = away
}

func (c *cut) listErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreachable || c.unlisted {
		return errAway
	}
	return nil
}

func (c *cut) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreachable {
		return errAway
	}
	return nil
}

// Get implements store.KV.
func (c *cut) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := c.err(); err != nil {
		return store.Entry{}, err
	}
	return c.KV.Get(ctx, key)
}

// Put implements store.KV.
func (c *cut) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if err := c.err(); err != nil {
		return 0, err
	}
	return c.KV.Put(ctx, key, value, expected)
}

// Delete implements store.KV.
func (c *cut) Delete(ctx context.Context, key string, expected store.Revision) error {
	if err := c.err(); err != nil {
		return err
	}
	return c.KV.Delete(ctx, key, expected)
}

// List implements store.KV.
func (c *cut) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	if err := c.listErr(); err != nil {
		return func(yield func(store.Entry, error) bool) { yield(store.Entry{}, err) }
	}
	return c.KV.List(ctx, prefix, start)
}

// option changes a replica before it joins.
type option func(*operation.Config, *operation.Kind)

func places(n int) option { return func(_ *operation.Config, k *operation.Kind) { k.Places = n } }

func draining(d time.Duration) option {
	return func(_ *operation.Config, k *operation.Kind) { k.Drain = d }
}

// join adds a replica to the group. It does not run operations before run is
// called, and does not renew its lease.
func (g *group) join(t *testing.T, options ...option) *replica {
	t.Helper()
	r, err := g.tryJoin(t, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tryJoin adds a replica, which may fail to join.
func (g *group) tryJoin(t *testing.T, options ...option) (*replica, error) {
	t.Helper()
	r := &replica{group: g, cut: &cut{KV: g.kv}, ended: make(chan struct{}), tokens: map[string]string{}, ends: map[string]error{}, release: map[string]chan struct{}{}}
	cfg := operation.Config{KV: r.cut, NewID: g.id, Lease: lease}
	k := operation.Kind{Name: kind, Places: 8, Perform: r.perform}
	for _, o := range options {
		o(&cfg, &k)
	}
	w, err := operation.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Register(k)
	r.Workers = w
	return r, w.Join(t.Context())
}

// run lets the replica run operations until the test ends or quit is called.
func (r *replica) run(t *testing.T) *replica {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		if err := r.Run(ctx); err != nil {
			t.Errorf("the workers failed: %v", err)
		}
	}()
	t.Cleanup(r.quit)
	return r
}

// quit stops the replica in good order.
func (r *replica) quit() {
	r.stop()
	<-r.ended
}

var errStopped = errors.New("it was to stop before its next step")

// perform implements operation.Kind: the operation runs until finish is called
// or its context ends.
func (r *replica) perform(_, cancellable context.Context, j operation.Job) error {
	r.mu.Lock()
	r.begun = append(r.begun, j.ID)
	r.tokens[j.ID] = j.Token
	if r.failing == j.ID {
		r.mu.Unlock()
		return errors.New("its record cannot be written")
	}
	done := r.release[j.ID]
	if done == nil {
		done = make(chan struct{})
		r.release[j.ID] = done
	}
	r.mu.Unlock()
	var err error
	select {
	case <-done:
	case <-cancellable.Done():
		err = context.Cause(cancellable)
	case <-j.Stopping:
		err = errStopped
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends[j.ID] = err
	if err == operation.ErrCancelled || err == errStopped { //nolint:errorlint // the cause itself
		return nil // the kind has ended it
	}
	return err
}

// fail makes an operation fail whenever it is performed; "": none.
func (r *replica) fail(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = id
}

// finish lets operations end.
func (r *replica) finish(ids ...string) {
	r.mu.Lock()
	for _, id := range ids {
		if r.release[id] == nil {
			r.release[id] = make(chan struct{})
		}
		close(r.release[id])
	}
	r.mu.Unlock()
	synctest.Wait()
}

// accept accepts an operation on this replica.
func (r *replica) accept(t *testing.T, id, region string) {
	t.Helper()
	j := operation.Job{ID: id, Subject: nf.Subject{Kind: kind, ID: "s"}, Region: region, Token: r.group.id()}
	if err := r.Reserve(t.Context(), j, nf.RequestKey{}); err != nil {
		t.Fatal(err)
	}
	r.Start(t.Context(), j)
	synctest.Wait()
}

func (r *replica) performed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.begun)
}

// token returns the token with which an operation was performed last.
func (r *replica) token(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tokens[id]
}

func (r *replica) end(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends[id]
}

// claimed returns the keys of the list of work.
func (g *group) claimed(t *testing.T) []string {
	t.Helper()
	var keys []string
	for e, err := range g.kv.List(t.Context(), "claims/", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, e.Key)
	}
	return keys
}

// keys returns the keys of the store, except those of the leases.
func (g *group) keys(t *testing.T) []string {
	t.Helper()
	var keys []string
	for e, err := range g.kv.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(e.Key, "replicas/") {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, test func(t *testing.T, g *group)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, &group{kv: memory.New()}) })
}

// pass lets time pass on the test's clock.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	delay.For(t.Context(), d, nil)
}
