package aaisync

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/leader"
)

// Source says what A&AI is to have.
type Source interface {
	// Subjects yields every subject. It is called often, and reads no region.
	Subjects(ctx context.Context) iter.Seq2[Subject, error]

	// Subject returns one subject. It returns nf.NotFound if it does not exist.
	Subject(ctx context.Context, id string) (Subject, error)

	// Documents returns a subject, and then its documents. It returns nf.NotFound if the
	// subject does not exist.
	Documents(ctx context.Context, id string) (Subject, []aai.Document, error)

	// Watch follows what Subject.Live tells of, until the context ends. It runs while
	// this replica writes.
	Watch(ctx context.Context)
}

// Subject is an instance, a network or a cloud region. Its documents may have changed whenever Version
// or Live has.
type Subject struct {
	ID      string
	Version string // of what the store has; not empty
	Live    string // of what the cloud region has; empty: unknown
	Busy    bool   // it is being changed, and is not written meanwhile
	Place   aai.Place
}

// Target writes documents; an aai.Writer does.
type Target interface {
	Write(ctx context.Context, wanted []aai.Document, last aai.Written, verify bool) (aai.Report, error)
	Strays(ctx context.Context, p aai.Place, known func(path string) bool) (aai.Written, error)
	StrayNetworks(ctx context.Context, known func(path string) bool) (aai.Written, error)
	// Adapted returns the paths of the objects of a cloud region that SO's adapter has
	// written, by instance.
	Adapted(ctx context.Context, p aai.Place) (map[string][]string, error)
}

// Instances tells which objects of SO's adapter belong to no instance.
type Instances interface {
	// Places returns the cloud regions in which instances are.
	Places(ctx context.Context) ([]aai.Place, error)
	// Exists reports whether there is an instance.
	Exists(ctx context.Context, id string) (bool, error)
}

var _ Target = (*aai.Writer)(nil)

// Config configures a Keeper. KV, Source, Target and NewID are required.
type Config struct {
	KV     store.KV
	Source Source
	Target Target
	NewID  func() string // returns a short unique id

	Instances Instances        // default: objects that SO's adapter has left are not searched
	Clock     func() time.Time // default time.Now
	Logger    *slog.Logger     // default: discard
	Lease     time.Duration    // time without a heartbeat before a replica is considered dead; default 10 s
	Sole      bool             // no other process can open the store
	Parallel  int              // maximum number of subjects that are written at once; default 2
	Scan      time.Duration    // interval between readings of the subjects; default 30 s
	Verify    time.Duration    // interval between comparisons of a subject that has not changed; default 1 h
}

func (c *Config) complete() error {
	if c.KV == nil || c.Source == nil || c.Target == nil || c.NewID == nil {
		return errors.New("cannot create a keeper of A&AI: KV, Source, Target and NewID are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Parallel = cmp.Or(c.Parallel, 2)
	c.Scan = cmp.Or(c.Scan, 30*time.Second)
	c.Verify = cmp.Or(c.Verify, time.Hour)
	return nil
}

// Keeper keeps A&AI equal to a Source. It is safe for concurrent use.
type Keeper struct {
	cfg      Config
	records  store.Table[record]
	requests store.Table[request]
	orphans  store.Table[orphan]
	group    *leader.Group
	wakeCh   delay.Signal

	mu     sync.Mutex
	denied time.Time // until when nothing is sent, because A&AI denies everything
	counts map[nf.ListingState]int
	left   int             // instances that are gone, and of which SO's adapter has left objects
	marks  map[string]mark // by subject, while this replica writes

	// touched are subjects that may have changed; nil while this replica does not write.
	touched map[string]bool

	strays time.Time // when to look for them next; only work uses it
}

// New returns a keeper. It reads and writes nothing before Run.
func New(cfg Config) (*Keeper, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	group, err := leader.New(leader.Config{
		KV: cfg.KV, Prefix: "aai/", Work: "updates of A&AI", NewID: cfg.NewID, Clock: cfg.Clock, Logger: cfg.Logger, Lease: cfg.Lease, Sole: cfg.Sole,
	})
	if err != nil {
		return nil, err
	}
	return &Keeper{
		cfg: cfg, group: group, wakeCh: delay.NewSignal(), counts: map[nf.ListingState]int{},
		records:  store.NewTable[record](cfg.KV, "aai/subjects/", "record of A&AI"),
		requests: store.NewTable[request](cfg.KV, "aai/requests/", "request to compare A&AI"),
		orphans:  store.NewTable[orphan](cfg.KV, "aai/orphans/", "record of orphaned objects in A&AI"),
	}, nil
}

// Touch says that a subject may have changed, so that it need not wait for the next
// reading of all subjects. It does not block.
func (k *Keeper) Touch(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.touched != nil {
		k.touched[id] = true
		k.wakeCh.Send()
	}
}

// Refresh has a subject compared with A&AI again, even if nothing has changed. It
// returns nf.NotFound if A&AI has, and is to have, nothing of it.
func (k *Keeper) Refresh(ctx context.Context, id string) error {
	if _, err := k.State(ctx, id); err != nil {
		return err
	}
	return k.ask(ctx, id)
}

// ask tells the replica that writes.
func (k *Keeper) ask(ctx context.Context, id string) error {
	if err := k.requests.Put(ctx, id, request{ID: id, At: k.cfg.Clock().UTC()}); err != nil {
		return err
	}
	k.Touch(id)
	return nil
}

// Gone waits until A&AI has no object of a removed subject, or until the context ends,
// and reports which. So SO can delete a VNF right after its instance: an edge to an
// object of ours would change the version of the VNF under its hands. It returns at once
// if A&AI never had one.
func (k *Keeper) Gone(ctx context.Context, id string) bool {
	asked := false
	for {
		_, err := k.records.Get(ctx, id)
		if nf.KindOf(err) == nf.NotFound || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		if !asked && err == nil {
			asked = k.ask(ctx, id) == nil
		}
		delay.For(ctx, gonePause, nil)
	}
}

// State returns what is known of a subject in A&AI, and of requests for it. It returns nf.NotFound if A&AI has,
// and is to have, nothing of it.
func (k *Keeper) State(ctx context.Context, id string) (State, error) {
	s, err := k.cfg.Source.Subject(ctx, id)
	exists := err == nil
	if nf.IgnoreNotFound(err) != nil {
		return State{}, err
	}
	r, err := k.records.Get(ctx, id)
	state := r.state(s)
	switch {
	case nf.KindOf(err) == nf.NotFound && exists:
		state = State{ID: id, Condition: nf.ListingDirty}
	case err != nil:
		return State{}, err
	}
	asked, err := k.requests.Get(ctx, id)
	if err == nil {
		state.Asked, state.Pending = asked.At, true
	}
	return state, nf.IgnoreNotFound(err)
}

// States yields the state of each subject that has a record, by id. It includes subjects
// that no longer exist, and reads no region. It does not know requests.
func (k *Keeper) States(ctx context.Context) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		for r, err := range k.records.All(ctx, "") {
			if err != nil {
				yield(State{}, err)
				return
			}
			s, err := k.cfg.Source.Subject(ctx, r.ID)
			if nf.IgnoreNotFound(err) != nil {
				yield(State{}, err)
				return
			}
			if !yield(r.state(s), nil) {
				return
			}
		}
	}
}

// Counts returns the number of subjects by condition, as last read by this replica. It
// is empty unless this replica writes.
func (k *Keeper) Counts() map[nf.ListingState]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.counts // each scan makes a new map
}
