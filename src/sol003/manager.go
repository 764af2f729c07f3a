package sol003

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// Packages are the packages of the catalog.
type Packages interface {
	Package(ctx context.Context, id string) (nf.Package, error)
	PackagesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Package, error]
	// HoldOps returns the ops that prevent the removal of a package. They fail if the
	// package changes before they are written.
	HoldOps(ctx context.Context, h nf.Holding) ([]store.Op, error)
	ReleaseOps(ctx context.Context, h nf.Holding) ([]store.Op, error)
}

// Regions are the cloud regions, which SOL003 calls VIMs.
type Regions interface {
	Region(ctx context.Context, id string) (nf.Region, error)
	RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error] // ordered by id
	Users(ctx context.Context, of nf.Holding) iter.Seq2[nf.Subject, error]       // of a region
	RemoveRegion(ctx context.Context, id string) error                           // nf.Conflict while it is used
}

// Descriptors reads the VNF descriptors of packages.
type Descriptors interface {
	Topology(ctx context.Context, pkg string) (tosca.Topology, error)
}

// Changes starts the engine's operations.
type Changes interface {
	Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error)
	Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error)
	Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error)
	Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error)
	Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error)
}

// Repairs retries, undoes and cancels the engine's operations. Stop cancels one before its
// next step.
type Repairs interface {
	Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	Cancel(ctx context.Context, operation string) (nf.Operation, error)
	Stop(ctx context.Context, operation string) (nf.Operation, error)
}

// Instances reads the engine's instances and operations.
type Instances interface {
	Instance(ctx context.Context, id string) (nf.Instance, error)
	Operation(ctx context.Context, id string) (nf.Operation, error)
	// Wait waits until an operation ends, and returns it.
	Wait(ctx context.Context, id string) (nf.Operation, error)
	Pods(ctx context.Context, instance string) ([]nf.Pod, error)
}

// Engine carries out the occurrences of VNFs, each as an operation on an instance with the
// id of the VNF.
type Engine struct {
	Changes   Changes
	Repairs   Repairs
	Instances Instances
	// Check returns the cloud region that an instantiation makes, that in which it creates
	// machines, or "", and its errors that can be known in advance.
	Check func(ctx context.Context, req nf.InstantiateRequest) (region, cloud string, err error)
}

// Hooks runs the scripts of VNF descriptors that are not Jobs.
type Hooks interface {
	// Check returns nf.Invalid if a request lacks what a script needs.
	Check(call nf.VNFHook) error
	// Run runs a script until it ends. Tell gets its output.
	Run(ctx context.Context, call nf.VNFHook, tell func(nf.LogEntry) error) error
}

// Granter asks an NFVO for the permission to carry out an occurrence. The methods return
// nf.Forbidden if the NFVO refuses the occurrence.
type Granter interface {
	// Ask returns the grant, or where the NFVO will decide about it. After a crash, it may
	// be called again for an occurrence.
	Ask(ctx context.Context, req nf.GrantRequest) (nf.Grant, nf.PendingGrant, error)
	// Await waits for the decision, also about a grant that another process has asked for.
	Await(ctx context.Context, req nf.GrantRequest, pending nf.PendingGrant) (nf.Grant, error)
}

// Config configures a Manager. The fields of the first group are required.
type Config struct {
	KV          store.KV
	Packages    Packages
	Regions     Regions
	Descriptors Descriptors
	Changes     Changes
	Repairs     Repairs
	Instances   Instances
	Workers     *operation.Workers // run the attempts; New registers the kind of VNFs

	Engines   map[string]Engine // of VNFs that the first one does not carry out, by InstantiatedVNF.Engine
	Hooks     Hooks             // nil: scripts that are not Jobs are not run
	Clouds    Clouds            // nil: VNFs run on Kubernetes clusters only
	Granter   Granter           // nil: everything is granted
	Clock     func() time.Time  // default time.Now
	Places    int               // attempts that run at once, without those that wait; default 32
	Timeout   time.Duration     // of an attempt: longer than the engine's operations; default 24 h
	Retention time.Duration     // how long the occurrences of a deleted VNF are kept; default 30 days
}

func (c *Config) complete() error {
	if c.KV == nil || c.Packages == nil || c.Regions == nil || c.Descriptors == nil || c.Changes == nil || c.Repairs == nil || c.Instances == nil || c.Workers == nil {
		return errors.New("cannot create the ledger of SOL003: KV, Packages, Regions, Descriptors, Changes, Repairs, Instances and Workers are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	c.Places = max(cmp.Or(c.Places, 32), 1)
	c.Timeout = cmp.Or(c.Timeout, nf.MaxTimeout)
	c.Retention = cmp.Or(c.Retention, 30*24*time.Hour)
	return nil
}

// engineOf returns the engine of the first of the states of a VNF that is instantiated.
func (c *Config) engineOf(states ...nf.VNF) Engine {
	for _, v := range states {
		if v.Instantiated == nil {
			continue
		}
		if other, found := c.Engines[v.Instantiated.Engine]; found {
			return other
		}
		break
	}
	return Engine{Changes: c.Changes, Repairs: c.Repairs, Instances: c.Instances}
}

// Manager stores VNFs and their occurrences, and accepts operations on them. It is safe
// for concurrent use.
type Manager struct {
	cfg     Config
	resolve resolver

	vnfs        store.Table[nf.VNF]
	occurrences store.Table[record]
	notices     store.Table[nf.Notice]
	locks       operation.Locks[nf.VNF]
	ledger      *operation.Ledger
	acceptor    *operation.Acceptor
	noticed     delay.Signal
}

// New returns the ledger of a store. The workers run its attempts.
func New(cfg Config) (*Manager, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	vnfs := store.NewTable[nf.VNF](cfg.KV, "vnfs/", "VNF")
	m := &Manager{
		cfg: cfg, resolve: resolver{cfg}, vnfs: vnfs,
		occurrences: store.NewTable[record](cfg.KV, "occurrences/", "occurrence"),
		notices:     store.NewTable[nf.Notice](cfg.KV, "notices/", "notice"),
		locks:       operation.Locks[nf.VNF]{Subjects: vnfs, Of: lockOf},
		ledger:      cfg.Workers.Ledger(),
		noticed:     delay.NewSignal(),
	}
	perform := m.ledger.Performer(false, m.work)
	m.acceptor = cfg.Workers.Register(operation.Kind{
		Name: nf.VNFSubject, Places: cfg.Places, Timeout: cfg.Timeout, Names: m.locks.Names, Withdraw: m.withdraw, Retention: cfg.Retention,
		Perform: func(ctx, cancellable context.Context, j operation.Job) error {
			defer m.noticed.Send()
			return perform(ctx, cancellable, j)
		},
		Sweep: func() operation.Sweep { return newSweep(m) },
	})
	return m, nil
}

// lockOf returns the lock of a VNF.
func lockOf(v *nf.VNF) operation.Lock {
	return operation.Lock{Subject: subjectOf(v.ID), Operation: &v.Operation, Claim: &v.Claim, Last: &v.LastOperation, Updated: &v.Updated}
}

func subjectOf(id string) nf.Subject { return nf.Subject{Kind: nf.VNFSubject, ID: id} }

func (m *Manager) now() time.Time { return m.cfg.Clock().UTC().Round(0) }

// holding is the hold of a VNF on a package.
func holding(v nf.VNF, pkg string) nf.Holding {
	return nf.Holding{Holder: nf.Holder{Subject: subjectOf(v.ID), Scope: nf.Scope{Project: nf.ProjectOf(v.Project)}}, Package: pkg}
}

// resolver finds what requests name. It writes nothing.
type resolver struct{ cfg Config }

// PackageOf returns the onboarded and enabled package of a project whose VNF descriptor
// has the id: the one that was created last. It returns nf.Unsupported if there is none.
func (m *Manager) PackageOf(ctx context.Context, project, vnfd string) (nf.Package, error) {
	return m.resolve.packageOf(ctx, project, vnfd)
}

// RegionsOf returns the cloud regions that the connections of a request name, by their
// keys; without any, it returns the default VIM's under the key "default". It returns
// nf.NotFound for a VIM that does not exist, and if there is no default, and
// nf.Unsupported for an OpenStack cloud, if the configuration has no Clouds.
func (m *Manager) RegionsOf(ctx context.Context, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.Region, error) {
	return m.resolve.regionsOf(ctx, wanted)
}
