package notify

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Source provides the instances and the changes of their objects.
type Source interface {
	// Target returns where an instance's objects are. It returns nf.NotFound
	// once the instance is gone.
	Target(ctx context.Context, instance string) (Target, error)

	// Follow yields the objects of a kind in a region that belong to any owner,
	// and then an Event with Synced set. After that it yields each changed
	// object, until the loop stops or the context ends. An error ends the
	// sequence; the caller starts it again later. nf.Unsupported means that the
	// region does not have the kind.
	Follow(ctx context.Context, region string, kind nf.Ref) iter.Seq2[Event, error]
}

// Target is the location of an instance's objects, and the kinds that they can
// have.
type Target struct {
	Region string
	Owner  string   // owner label of the objects; empty: the instance's id
	Kinds  []nf.Ref // group, version and kind
}

// Event is the state of one object.
type Event struct {
	Owner   string
	Ref     nf.Ref
	Object  map[string]any // must not be modified
	Deleted bool           // the object was deleted or no longer belongs to the owner; Object is its last state
	Synced  bool           // not an object: all existing objects have been yielded
}

// Config configures a Notifier. The Prefix and the Noun of the outbox are set
// by New.
type Config struct {
	outbox.Config

	Source Source

	// Admit is called before a new subscription is stored; an error rejects the
	// subscription. It may be called for one that is not stored afterwards. Default:
	// all are admitted.
	Admit func(ctx context.Context, s nf.Subscription) error
}

// Notifier stores subscriptions and serves them. It is safe for concurrent use.
type Notifier struct {
	cfg           Config
	subscriptions store.Table[record]
	baselines     store.Table[baseline]
	outbox        *outbox.Outbox
}

// New returns a notifier. It sends nothing before Run is called.
func New(cfg Config) (*Notifier, error) {
	cfg.Prefix, cfg.Noun = "notifications/", "notification"
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	if cfg.Source == nil {
		return nil, errors.New("cannot create a notifier: Source is required")
	}
	if cfg.Admit == nil {
		cfg.Admit = func(context.Context, nf.Subscription) error { return nil }
	}
	n := &Notifier{
		cfg:           cfg,
		subscriptions: store.NewTable[record](cfg.KV, "subscriptions/", "subscription"),
		baselines:     store.NewTable[baseline](cfg.KV, "baselines/", "baseline of a subscription"),
	}
	var err error
	n.outbox, err = outbox.New(cfg.Config, source{n})
	return n, err
}

// Run serves the subscriptions of the regions that are assigned to this
// replica, until the context ends. It must be called only once.
func (n *Notifier) Run(ctx context.Context) error { return n.outbox.Run(ctx) }

// Targets returns the number of recent targets of this replica, by the state of
// their circuit breaker.
func (n *Notifier) Targets() map[nf.BreakerState]int { return n.outbox.Targets() }

func (n *Notifier) now() time.Time { return n.cfg.Clock().UTC() }

// source makes a queue of requests of each subscription. A shard is the
// subscriptions of a region.
type source struct{ notifier *Notifier }

var _ outbox.Source = source{}

// Queues implements outbox.Source.
func (n source) Queues(ctx context.Context) iter.Seq2[outbox.Queue, error] {
	return func(yield func(outbox.Queue, error) bool) {
		for rec, err := range n.notifier.subscriptions.All(ctx, "") {
			q := outbox.Queue{Key: rec.UID, Shard: rec.Region, Name: subscriptionKey(rec.Instance, rec.Name), Version: rec.MinInterval.String()}
			if !yield(q, err) {
				return
			}
		}
	}
}

// Serve implements outbox.Source.
func (n source) Serve(ctx context.Context, s *outbox.Shard) {
	w := newRegionWatch(n.notifier, s.Name)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { w.run(ctx) })
	s.Run(ctx, func(q outbox.Queue, wakeCh delay.Signal) outbox.Feed { return newSubscriptionWorker(w, q, wakeCh) })
}

// Collect implements outbox.Source. It deletes the baselines whose subscription
// does not exist.
func (n source) Collect(ctx context.Context) error {
	stray := map[string]bool{}
	for b, err := range n.notifier.baselines.All(ctx, "") {
		if err != nil {
			return err
		}
		stray[b.UID] = true
	}
	// Order matters: a subscription is older than its baseline, so listing the
	// subscriptions last misses none.
	for rec, err := range n.notifier.subscriptions.All(ctx, "") {
		if err != nil {
			return err
		}
		delete(stray, rec.UID)
	}
	for uid := range stray {
		if err := nf.IgnoreNotFound(n.notifier.baselines.Delete(ctx, uid)); err != nil {
			return err
		}
	}
	return nil
}
