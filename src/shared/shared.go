package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config configures Resources. The fields of the first two groups are required.
type Config struct {
	Kind      Kind
	Subject   nf.SubjectKind                     // of the resources
	Table     string                             // in the store, of the resources and of the holds on them
	Namespace string                             // of their objects in a region
	Field     string                             // of requests, that has the spec; empty: the spec's fields are those of the request
	Task      func(*nf.Operation) *nf.SharedTask // of an operation on a resource

	KV      store.KV
	Regions Regions
	Open    func(ctx context.Context, region string) (Cluster, error) // does not dial
	Workers *operation.Workers                                        // run the operations; New registers the kind
	Users   Users                                                     // whose pods see changes after a restart; nil: none

	Parallel  int           // operations that run at once; default 8
	Timeout   time.Duration // of an operation whose request sets none; default 5 min
	Retention time.Duration // how long ended operations are kept; default 30 days
}

func (c *Config) complete() error {
	if c.Kind == nil || c.Subject == "" || c.Table == "" || c.Namespace == "" || c.Task == nil {
		return errors.New("cannot create the resources: Kind, Subject, Table, Namespace and Task are required")
	}
	if c.KV == nil || c.Regions == nil || c.Open == nil || c.Workers == nil {
		return fmt.Errorf("cannot create the %ss: KV, Regions, Open and Workers are required", c.Subject)
	}
	c.Parallel = cmp.Or(c.Parallel, 8)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	c.Retention = cmp.Or(c.Retention, 30*24*time.Hour)
	return nil
}

// Resources stores the resources of one kind, and accepts operations on them. It is
// safe for concurrent use.
type Resources struct {
	cfg Config

	table    store.Table[nf.Shared]
	holds    store.Holds
	locks    operation.Locks[nf.Shared]
	ledger   *operation.Ledger
	acceptor *operation.Acceptor
	counts   atomic.Pointer[[]nf.SharedCount]
}

// New returns the resources of a store. The workers run their operations.
func New(cfg Config) (*Resources, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	prefix := cfg.Table + "/"
	r := &Resources{
		cfg:    cfg,
		table:  store.NewTable[nf.Shared](cfg.KV, prefix, string(cfg.Subject)),
		holds:  store.NewHolds(cfg.KV, prefix),
		ledger: cfg.Workers.Ledger(),
	}
	r.locks = operation.Locks[nf.Shared]{Subjects: r.table, Of: r.lockOf}
	r.acceptor = cfg.Workers.Register(operation.Kind{
		Name: cfg.Subject, Places: cfg.Parallel, Timeout: cfg.Timeout, Perform: r.ledger.Performer(false, r.work),
		Names: r.locks.Names, Withdraw: r.withdraw,
		Sweep: func() operation.Sweep { return &sweep{resources: r, idle: map[string]bool{}} }, Retention: cfg.Retention,
	})
	return r, nil
}

func (r *Resources) lockOf(s *nf.Shared) operation.Lock {
	return operation.Lock{Subject: r.subjectOf(s.ID), Operation: &s.Operation, Claim: &s.Claim, Last: &s.Last, Updated: &s.Updated}
}

// subjectOf returns a resource as the subject of operations.
func (r *Resources) subjectOf(id string) nf.Subject { return nf.Subject{Kind: r.cfg.Subject, ID: id} }

// noun returns a resource as sentences name it: "network edge.oam".
func (r *Resources) noun(id string) string { return r.subjectOf(id).Noun() }

// Named returns a name as the holder of resources.
func Named(name string) nf.Holder {
	return nf.Holder{Subject: nf.Subject{Kind: nf.HolderSubject, ID: name}}
}

// Operations returns the operations on the resources.
func (r *Resources) Operations() operation.OfKind { return r.ledger.OfKind(r.cfg.Subject) }

// Get returns a resource. It returns nf.NotFound if the resource does not exist.
func (r *Resources) Get(ctx context.Context, id string) (nf.Shared, error) {
	return r.table.Get(ctx, id)
}

// From yields the resources after the cursor, ordered by id.
func (r *Resources) From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Shared, error] {
	return r.table.After(ctx, "", from)
}

// Holders yields the holders of a resource.
func (r *Resources) Holders(ctx context.Context, id string) iter.Seq2[nf.Holder, error] {
	return r.holds.Holders(ctx, id, nil)
}
