package notify

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// Source tells what there is to notify of.
type Source interface {
	// Target says where an instance's objects are; nf.NotFound once the
	// instance is gone.
	Target(ctx context.Context, instance string) (Target, error)

	// Follow yields each object of a kind in a region that belongs to an
	// owner, then an Event that is Synced, and then each object that changes,
	// until the loop stops or the context ends. An error ends the sequence, and
	// it is begun anew later; nf.Unsupported says that there are no such objects.
	Follow(ctx context.Context, region string, kind nf.Ref) iter.Seq2[Event, error]
}

// Target is where an instance's objects are, and of which kinds they can be.
type Target struct {
	Region string
	Owner  string   // that the objects bear; empty: the instance's id
	Kinds  []nf.Ref // group, version and kind
}

// Event is the state of one object.
type Event struct {
	Owner   string
	Ref     nf.Ref
	Object  map[string]any // is not changed
	Deleted bool           // it is gone, or the owner's no more; Object is what it was last
	Synced  bool           // no object: all that is there has been told
}

// Poster posts letters.
type Poster interface {
	// Post sends a body and returns the status of the answer, whatever it is. An
	// error says that there was none.
	Post(ctx context.Context, url string, header map[string]string, body []byte) (status int, err error)
}

// Config is what a notifier is made of. The fields of the first group are
// required.
type Config struct {
	KV     store.KV
	Source Source
	NewID  func() string // short, never the same twice

	Hosts    outbound.Hosts   // where callbacks may lead to, beyond what everybody may; default: nowhere
	Poster   Poster           // default: HTTP, to where Hosts allows
	Clock    func() time.Time // default time.Now
	Logger   *slog.Logger     // default: discard
	Lease    time.Duration    // after which a replica that stands still is taken for dead; default 10 s
	Sole     bool             // no other process can have the store open
	Parallel int              // posts that are under way at once; default 64
	Survey   time.Duration    // how often an instance is looked at that shows no changes; default 30 s
	Keep     time.Duration    // how long dead letters are kept; default 30 days

	// Observe is told what became of each post; default: nobody is. It answers at once.
	Observe func(Outcome)
}

// Outcome is what became of a letter that was posted.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Deferred  Outcome = "deferred" // it is posted again later
	GivenUp   Outcome = "given_up" // it is a dead letter now
)

func (c *Config) complete() error {
	if c.KV == nil || c.Source == nil || c.NewID == nil {
		return errors.New("cannot make a notifier: KV, Source and NewID are required")
	}
	if c.Poster == nil {
		c.Poster = NewPoster(c.Hosts)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(Outcome) {}
	}
	defaults := []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Lease, 10 * time.Second}, {&c.Survey, 30 * time.Second}, {&c.Keep, 30 * 24 * time.Hour}}
	for _, d := range defaults {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.Parallel <= 0 {
		c.Parallel = 64
	}
	return nil
}

// Notifier keeps subscriptions and serves them. It is safe for concurrent use.
type Notifier struct {
	cfg Config

	subscriptions store.Table[record]
	baselines     store.Table[baseline]
	letters       store.Table[letter] // that are on their way
	dead          store.Table[letter]
	replicas      *lease.Group
	rounds        store.Table[round]

	poked   chan struct{} // holds one token when there may be something to do at once
	posting chan struct{} // one place for each post that is under way

	mu       sync.Mutex
	services map[string]*service // that run here, by the uid of their subscription
}

// New returns a notifier. It tells nobody anything before Run.
func New(cfg Config) (*Notifier, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Notifier{
		cfg:           cfg,
		subscriptions: store.NewTable[record](cfg.KV, "subscriptions/", "subscription"),
		baselines:     store.NewTable[baseline](cfg.KV, "baselines/", "baseline of a subscription"),
		letters:       store.NewTable[letter](cfg.KV, "letters/", "letter"),
		dead:          store.NewTable[letter](cfg.KV, "deadletters/", "dead letter"),
		replicas:      lease.NewGroup(cfg.KV, "notifiers/", "notifying replica", cfg.Lease, cfg.Clock),
		rounds:        store.NewTable[round](cfg.KV, "rounds/", "round of notifications"),
		poked:         make(chan struct{}, 1),
		posting:       make(chan struct{}, cfg.Parallel),
		services:      map[string]*service{},
	}, nil
}

func (n *Notifier) now() time.Time { return n.cfg.Clock().UTC() }

// poke makes Run look for work soon.
func (n *Notifier) poke() { rouse(n.poked) }

// rouse puts a token into a channel that holds one.
func rouse(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
