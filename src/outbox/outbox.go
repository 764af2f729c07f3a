package outbox

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// Source is the origin of an outbox's requests.
type Source interface {
	// Queues yields all queues, whether or not they have requests.
	Queues(ctx context.Context) iter.Seq2[Queue, error]
	// Serve calls the shard's Run, with whatever its feeds share, and returns
	// when the context has ended.
	Serve(ctx context.Context, s *Shard)
	// Collect deletes the stale records of the source. It is called every hour.
	Collect(ctx context.Context) error
}

// Config configures an Outbox. The fields of the first group are required.
type Config struct {
	KV     store.KV
	Prefix string        // of the keys of all records; no other outbox has it
	Noun   string        // the name of a request in errors and logs
	NewID  func() string // returns a short unique id

	Hosts    outbound.Hosts   // additional allowed targets, beyond those that are always allowed; default: none
	Send     Send             // default: HTTP, to the allowed hosts
	Clock    func() time.Time // default time.Now
	Logger   *slog.Logger     // default: discard
	Lease    time.Duration    // time without a heartbeat before a replica is considered dead; default 10 s
	Sole     bool             // no other process can open the store
	Parallel int              // maximum number of concurrent requests, in addition to one for each target; default 64
	Pace     Pace             // limits for each target
	Survey   time.Duration    // interval at which a feed without signals is called; default 30 s
	Keep     time.Duration    // retention of dead letters; default 30 days

	// Observe receives the outcome of each attempt; default: none. It must not
	// block.
	Observe func(Outcome)
}

// Outcome is the result of an attempt to deliver a request.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Deferred  Outcome = "retried"   // it will be retried
	GivenUp   Outcome = "abandoned" // it became a dead letter
)

// Complete sets the defaults. It returns an error if a required field is
// missing.
func (c *Config) Complete() error {
	if c.KV == nil || c.Prefix == "" || c.Noun == "" || c.NewID == nil {
		return errors.New("cannot create an outbox: KV, Prefix, Noun and NewID are required")
	}
	if c.Send == nil {
		c.Send = NewSend(c.Hosts, c.Noun)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Observe == nil {
		c.Observe = func(Outcome) {}
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Parallel = cmp.Or(c.Parallel, 64)
	c.Survey = cmp.Or(c.Survey, 30*time.Second)
	c.Keep = cmp.Or(c.Keep, 30*24*time.Hour)
	return nil
}

// Outbox stores requests and delivers them. It is safe for concurrent use.
type Outbox struct {
	cfg         Config
	source      Source
	alone       bool // no other package provides the source
	log         *slog.Logger
	pending     store.Table[Delivery] // not delivered yet
	dead        store.Table[Delivery]
	replicas    *lease.Group
	assignments store.Table[assignment]

	wakeCh  delay.Signal // holds one token when Run should look for queues
	targets *targets
	workers sync.Map // *worker, running here, by the key of their queue
}

// New returns an outbox of the source. It calls the source and sends requests
// only while Run is running. Without a source (nil), a request that is put makes
// its queue, and is sent as it is.
func New(cfg Config, source Source) (*Outbox, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	o := &Outbox{
		cfg:         cfg,
		source:      source,
		alone:       source == nil,
		log:         cfg.Logger.With("requests", cfg.Noun),
		pending:     store.NewTable[Delivery](cfg.KV, cfg.Prefix+"pending/", cfg.Noun),
		dead:        store.NewTable[Delivery](cfg.KV, cfg.Prefix+"dead/", "dead letter"),
		replicas:    lease.NewGroup(cfg.KV, cfg.Prefix+"replicas/", "delivering replica", cfg.Lease, cfg.Clock),
		assignments: store.NewTable[assignment](cfg.KV, cfg.Prefix+"shards/", "shard"),
		wakeCh:      delay.NewSignal(),
		targets:     newTargets(cfg),
	}
	if o.alone {
		o.source = stored{o}
	}
	return o, nil
}

// Scan makes Run look for new and removed queues soon.
func (o *Outbox) Scan() { o.wakeCh.Send() }

func (o *Outbox) now() time.Time { return o.cfg.Clock().UTC() }

// Targets returns the number of targets that this replica has used in the last 10
// minutes, or 3 hours if they do not respond, by the state of their circuit
// breaker.
func (o *Outbox) Targets() map[nf.BreakerState]int { return o.targets.states() }

// Wake makes a queue's worker reload its requests and call its feed, if this
// replica serves the queue. Without a source, it also finds a new queue.
func (o *Outbox) Wake(key string) {
	if !o.review(key) && o.alone {
		o.Scan()
	}
}

// review wakes a queue's worker. It returns false if there is none here.
func (o *Outbox) review(key string) bool {
	w, ok := o.workers.Load(key)
	if ok {
		w.(*worker).review()
	}
	return ok
}
