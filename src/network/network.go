package network

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config configures Networks. The fields of the first group are required.
type Config struct {
	KV      store.KV
	Regions Regions
	Open    func(ctx context.Context, region string) (Cluster, error) // does not dial
	Drivers map[string]Driver                                         // by name
	Workers *operation.Workers                                        // run the operations; New registers the kind of networks

	Parallel  int           // operations that run at once; default 8
	Timeout   time.Duration // of an operation whose request sets none; default 5 min
	Retention time.Duration // how long ended operations are kept; default 30 days
}

func (c *Config) complete() error {
	if c.KV == nil || c.Regions == nil || c.Open == nil || c.Workers == nil || len(c.Drivers) == 0 {
		return errors.New("cannot create the network manager: KV, Regions, Open, Workers and Drivers are required")
	}
	c.Parallel = cmp.Or(c.Parallel, 8)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	c.Retention = cmp.Or(c.Retention, 30*24*time.Hour)
	return nil
}

// Networks stores networks and accepts operations on them. It is safe for concurrent
// use.
type Networks struct {
	cfg Config

	networks store.Table[nf.Network]
	holds    store.Holds
	locks    operation.Locks[nf.Network]
	ledger   *operation.Ledger
	acceptor *operation.Acceptor
}

// prefix begins the keys of networks.
const prefix = nf.NetworkTable + "/"

// New returns the networks of a store. The workers run their operations.
func New(cfg Config) (*Networks, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	networks := store.NewTable[nf.Network](cfg.KV, prefix, "network")
	s := &Networks{
		cfg:      cfg,
		networks: networks,
		holds:    store.NewHolds(cfg.KV, prefix),
		locks:    operation.Locks[nf.Network]{Subjects: networks, Of: lockOf},
		ledger:   cfg.Workers.Ledger(),
	}
	s.acceptor = cfg.Workers.Register(operation.Kind{
		Name: nf.NetworkSubject, Places: cfg.Parallel, Timeout: cfg.Timeout, Perform: s.ledger.Performer(false, s.work),
		Names: s.locks.Names, Withdraw: s.withdraw,
		Sweep: func() operation.Sweep { return &sweep{s: s, idle: map[string]bool{}} }, Retention: cfg.Retention,
	})
	return s, nil
}

// lockOf returns the lock of a network.
func lockOf(n *nf.Network) operation.Lock {
	return operation.Lock{Subject: subjectOf(n.ID), Operation: &n.Operation, Claim: &n.Claim, Last: &n.Last, Updated: &n.Updated}
}

// subjectOf returns a network as the subject of operations.
func subjectOf(id string) nf.Subject { return nf.Subject{Kind: nf.NetworkSubject, ID: id} }

// Named returns a name as the holder of networks.
func Named(name string) nf.Holder {
	return nf.Holder{Subject: nf.Subject{Kind: nf.HolderSubject, ID: name}}
}

// Operations returns the operations on networks.
func (s *Networks) Operations() operation.OfKind { return s.ledger.OfKind(nf.NetworkSubject) }

// Network returns a network. It returns nf.NotFound if the network does not exist.
func (s *Networks) Network(ctx context.Context, id string) (nf.Network, error) {
	return s.networks.Get(ctx, id)
}

// NetworksFrom yields the networks after the cursor, ordered by id.
func (s *Networks) NetworksFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Network, error] {
	return s.networks.After(ctx, "", from)
}

// Holders yields the holders of a network.
func (s *Networks) Holders(ctx context.Context, id string) iter.Seq2[nf.Holder, error] {
	return s.holds.Holders(ctx, id, nil)
}

// Connect returns what the pods of a workload need to be attached to a network; see
// Driver.
func (s *Networks) Connect(n nf.Network, a nf.Attachment, replicas int) (nf.Connection, error) {
	driver, err := s.driver("attach", n)
	if err != nil {
		return nf.Connection{}, err
	}
	return driver.Connect(n, nf.NetworkNamespace, a, replicas)
}

// driver returns the driver of a network. It returns nf.Unsupported if this service
// does not have it.
func (s *Networks) driver(verb string, n nf.Network) (Driver, error) {
	if driver := s.cfg.Drivers[n.Driver]; driver != nil {
		return driver, nil
	}
	return nil, nf.E(nf.Unsupported, verb, "network "+n.Name, nf.Violations{{Field: "driver", Message: unknownDriver(n.Driver, s.cfg.Drivers)}})
}
