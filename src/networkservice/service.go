package networkservice

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Instances changes the VNF instances that are members. A request under a key that was
// used before returns the operation of that time.
type Instances interface {
	// Instance returns an instance, or nf.NotFound.
	Instance(ctx context.Context, id string) (nf.Instance, error)
	Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error)
	Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error)
	// Terminate returns nf.NotFound if the instance does not exist.
	Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error)
}

// Previews return the errors of changes of instances that are known in advance.
type Previews interface {
	PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error)
	PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error)
	PreviewTerminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Preview, error)
}

// Children are the operations on instances.
type Children interface {
	Operation(ctx context.Context, id string) (nf.Operation, error)
	// Wait returns the operation when it has ended.
	Wait(ctx context.Context, id string) (nf.Operation, error)
	Cancel(ctx context.Context, id string) (nf.Operation, error)
}

// Config configures Services. The fields of the first group are required.
type Config struct {
	KV        store.KV
	Workers   *operation.Workers // run the operations; New registers the kind
	Instances Instances
	Previews  Previews
	Children  Children

	Places    int           // operations that run at once; default 8
	Timeout   time.Duration // of an operation whose request sets none; default 1 h
	Retention time.Duration // how long ended operations are kept; default 30 days
}

func (c *Config) complete() error {
	if c.KV == nil || c.Workers == nil || c.Instances == nil || c.Previews == nil || c.Children == nil {
		return errors.New("cannot create the network services: KV, Workers, Instances, Previews and Children are required")
	}
	c.Places = cmp.Or(c.Places, 8)
	c.Timeout = cmp.Or(c.Timeout, time.Hour)
	c.Retention = cmp.Or(c.Retention, 30*24*time.Hour)
	return nil
}

// Services stores network services, and accepts operations on them. It is safe for
// concurrent use.
type Services struct {
	cfg Config

	table    store.Table[nf.NetworkService]
	locks    operation.Locks[nf.NetworkService]
	ledger   *operation.Ledger
	acceptor *operation.Acceptor
}

// New returns the network services of a store. The workers run their operations.
func New(cfg Config) (*Services, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Services{
		cfg:    cfg,
		table:  store.NewTable[nf.NetworkService](cfg.KV, "services/", "network service"),
		ledger: cfg.Workers.Ledger(),
	}
	s.locks = operation.Locks[nf.NetworkService]{Subjects: s.table, Of: lockOf}
	s.acceptor = cfg.Workers.Register(operation.Kind{
		Name: nf.ServiceSubject, Places: cfg.Places, Timeout: cfg.Timeout, Perform: s.ledger.Performer(false, s.work),
		Names: s.locks.Names, Withdraw: func(context.Context, nf.Operation) error { return nil },
		Sweep: func() operation.Sweep { return &sweep{services: s} }, Retention: cfg.Retention,
	})
	return s, nil
}

// lockOf returns the lock of a service.
func lockOf(s *nf.NetworkService) operation.Lock {
	return operation.Lock{Subject: subjectOf(s.ID), Operation: &s.Operation, Claim: &s.Claim, Last: &s.Last, Updated: &s.Updated}
}

// subjectOf returns a service as the subject of operations.
func subjectOf(id string) nf.Subject { return nf.Subject{Kind: nf.ServiceSubject, ID: id} }

// Operations returns the operations on services.
func (s *Services) Operations() operation.OfKind { return s.ledger.OfKind(nf.ServiceSubject) }

// Get returns a service. It returns nf.NotFound if the service does not exist.
func (s *Services) Get(ctx context.Context, id string) (nf.NetworkService, error) {
	return s.table.Get(ctx, id)
}

// From yields the services after the cursor, ordered by id.
func (s *Services) From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.NetworkService, error] {
	return s.table.After(ctx, "", from)
}

// Owner returns the service that an instance is a member of, or the zero Subject.
func (s *Services) Owner(ctx context.Context, instance string) (nf.Subject, error) {
	id, member, dotted := strings.Cut(instance, ".")
	if !dotted {
		return nf.Subject{}, nil
	}
	there, err := s.table.Get(ctx, id)
	if err != nil {
		return nf.Subject{}, nf.IgnoreNotFound(err)
	}
	for _, m := range there.All() {
		if m.Name == member {
			return subjectOf(id), nil
		}
	}
	return nf.Subject{}, nil
}
