package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Engine runs operations on VNF instances and returns their records.
type Engine interface {
	InstanceEngine
	OperationEngine
	ScopedRecords
}

// InstanceEngine changes VNF instances and returns their records.
type InstanceEngine interface {
	Changes
	Configurer
	Previews
	ConfigurerPreviews
	InstanceRecords
}

// OperationEngine recovers operations and returns their records.
type OperationEngine interface {
	Recovery
	OperationRecords
}

// Catalog stores regions and packages, and knows their holders.
type Catalog interface {
	RegionKeeper
	PackageKeeper
	HoldKeeper
}

// Changes start operations. A request with an idempotency key that was used
// before returns the operation that the key started, whatever else the request
// says.
type Changes interface {
	Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error)
	Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error)
	Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error)
	Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error)
}

// Configurer starts day-2 operations: it configures and tests instances, scales and
// restarts their workloads, and adopts workloads that already run.
type Configurer interface {
	Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error)
	Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error)
	Act(ctx context.Context, id string, req nf.ActRequest) (nf.Operation, error)
	Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error)
}

// Previews return what a change would do, without changing anything.
type Previews interface {
	PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error)
	PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error)
	PreviewRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Preview, error)
	PreviewTerminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Preview, error)
}

// ConfigurerPreviews return what a day-2 operation would do.
type ConfigurerPreviews interface {
	PreviewConfigure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Preview, error)
	PreviewAct(ctx context.Context, id string, req nf.ActRequest) (nf.Preview, error)
	PreviewTest(ctx context.Context, id string, req nf.TestRequest) (nf.Preview, error)
	PreviewAdopt(ctx context.Context, req nf.AdoptRequest) (nf.Preview, error)
}

// Recovery retries, undoes and cancels operations, and returns what a retry or an undo
// would do.
type Recovery interface {
	Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	PreviewRetry(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error)
	PreviewUndo(ctx context.Context, operation string, opts nf.Options) (nf.Preview, error)
	Cancel(ctx context.Context, operation string) (nf.Operation, error)
}

// InstanceRecords reads instances.
type InstanceRecords interface {
	Instance(ctx context.Context, id string) (nf.Instance, error)
	Revisions(ctx context.Context, id string) ([]nf.Revision, error)
	Revision(ctx context.Context, id string, number int) (nf.Revision, error)
	Health(ctx context.Context, id string) ([]nf.Health, error)
	Pods(ctx context.Context, id string) ([]nf.Pod, error)
}

// OperationRecords reads operations.
type OperationRecords interface {
	Operation(ctx context.Context, id string) (nf.Operation, error)
	// OperationsFrom yields the operations of an instance, or of all if the id is empty,
	// in the order of their acceptance.
	OperationsFrom(ctx context.Context, instance string, from nf.Cursor) iter.Seq2[nf.Operation, error]
	Changes(ctx context.Context, id string) ([]nf.Change, error)
	Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error]
}

// ScopedRecords yields the records in the scopes of a cursor, and does not read the
// others.
type ScopedRecords interface {
	// InstancesIn yields instances, ordered by id: those of a region, or of all if it is
	// empty.
	InstancesIn(ctx context.Context, region string, from nf.Cursor) iter.Seq2[nf.Instance, error]
	// OperationsIn yields operations in the order of their acceptance.
	OperationsIn(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Operation, error]
}

// RegionKeeper stores cloud regions, and knows their state.
type RegionKeeper interface {
	RegionRecords
	// RegionCapabilities returns what a region offers; a fresh answer is read now.
	RegionCapabilities(ctx context.Context, id string, fresh bool) (nf.RegionCapabilities, error)
	// Enlist registers a region even if its cluster is unreachable.
	Enlist(ctx context.Context, r nf.Region) (nf.Region, error)
}

// HoldKeeper knows the holders of regions and packages.
type HoldKeeper interface {
	// HoldersIn yields the holders of a region or a package. It yields only those of
	// the kinds and scopes that in reports true for, and does not read the others. If
	// in is nil, it yields all.
	HoldersIn(ctx context.Context, of nf.Holding, in func(nf.SubjectKind, nf.Scope) bool) iter.Seq2[nf.Holder, error]
}

// RegionRecords registers, reads and changes cloud regions.
type RegionRecords interface {
	Register(ctx context.Context, r nf.Region) (nf.Region, error)
	Region(ctx context.Context, id string) (nf.Region, error)
	RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error] // ordered by id
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
	RemoveRegion(ctx context.Context, id string) error
}

// PackageKeeper stores packages.
type PackageKeeper interface {
	PackageRecords
	CreatePackage(ctx context.Context, as nf.Package) (nf.Package, error)
	Upload(ctx context.Context, as nf.Package, content io.Reader) (p nf.Package, created bool, err error)
	UpdatePackage(ctx context.Context, id string, edit func(*nf.Package) error) (nf.Package, error)
	RemovePackage(ctx context.Context, id string) error
}

// PackageRecords reads packages.
type PackageRecords interface {
	Package(ctx context.Context, id string) (nf.Package, error)
	PackagesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Package, error] // ordered by id
	Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error)
}

// Audits reads the audit log.
type Audits interface {
	// Entries yields the entries that match the filter, newest first.
	Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error]
}

// GuardedConfig holds what is guarded. All fields except the imports are required.
type GuardedConfig struct {
	Authorizer *Authorizer
	Engine     Engine
	Catalog    Catalog
	Audits     Audits
	Imports    RegionImports  // nil: regions are not imported
	Packages   PackageImports // nil: packages are not imported
}

// Guarded gives access to the engine and the catalog with the permissions of the
// identity in the context. The methods of its parts have the signatures and
// errors of what they wrap, and three more errors. They return
// nf.Unauthenticated for a context without an identity, and nf.Forbidden for an
// object that the caller may see but not change. For an object that the caller
// may not see they return nf.NotFound, in the same words as for one that does
// not exist. Lists contain only what the caller may see. It is safe for
// concurrent use.
type Guarded struct {
	Regions    *Regions
	Packages   *Packages
	Instances  *Instances
	Operations *Operations
	AuditLog   *AuditLog

	guard *guard
}

// NewGuarded returns the guarded parts. It fails if a field of the configuration
// is missing.
func NewGuarded(cfg GuardedConfig) (*Guarded, error) {
	if cfg.Authorizer == nil || cfg.Engine == nil || cfg.Catalog == nil || cfg.Audits == nil {
		return nil, errors.New("cannot create a guard: Authorizer, Engine, Catalog and Audits are required")
	}
	if cfg.Imports == nil {
		cfg.Imports = noImports{cfg.Catalog}
	}
	g := &guard{authorizer: cfg.Authorizer, records: cfg.Engine}
	packages := &Packages{guard: g, keeper: cfg.Catalog, imports: cfg.Packages}
	regions := &Regions{guard: g, packages: packages, keeper: cfg.Catalog, holds: cfg.Catalog, imports: cfg.Imports}
	operations := &Operations{guard: g, engine: cfg.Engine, scoped: cfg.Engine}
	instances := &Instances{guard: g, regions: regions, packages: packages, operations: operations, engine: cfg.Engine, scoped: cfg.Engine}
	return &Guarded{
		Regions: regions, Packages: packages, Instances: instances, Operations: operations,
		AuditLog: &AuditLog{g, cfg.Audits}, guard: g,
	}, nil
}

// guard decides what the identity in the context may do and see. The records
// give the scopes of the instances that texts mention.
type guard struct {
	authorizer *Authorizer
	records    InstanceRecords
}

// may returns nil if the identity in the context has the permission in the
// scope, and nf.Forbidden or nf.Unauthenticated otherwise. The subjects are ids
// for the audit log.
func (g *guard) may(ctx context.Context, p nf.Permission, s nf.Scope, subjects ...string) error {
	id, err := g.asker(ctx)
	if err != nil {
		return err
	}
	err = g.authorizer.Allow(ctx, id, p, s)
	nf.TrailOf(ctx).Check(err == nil, p, s, subjects...)
	return err
}

// see returns hidden if the identity lacks the read permission in the scope.
func (g *guard) see(ctx context.Context, p nf.Permission, s nf.Scope, hidden error) error {
	id, err := g.asker(ctx)
	if err != nil || g.authorizer.Allow(ctx, id, p, s) == nil {
		return err
	}
	trail := nf.TrailOf(ctx)
	trail.Ask(p, s)
	trail.Hide()
	return hidden
}

// visible returns a function that reports whether the identity has the
// permission in a scope.
func (g *guard) visible(ctx context.Context, p nf.Permission) (func(nf.Scope) bool, error) {
	id, err := g.asker(ctx)
	if err != nil {
		return nil, err
	}
	return g.authorizer.Visible(ctx, id, p), nil
}

// mayRead returns a function that reports whether the identity has a permission to read
// in a scope. It returns nil for an identity that has it everywhere.
func (g *guard) mayRead(ctx context.Context, p nf.Permission) (func(nf.Scope) bool, error) {
	id, err := g.asker(ctx)
	if err != nil || g.authorizer.view(ctx, id).everywhere(p) {
		return nil, err
	}
	return g.authorizer.Visible(ctx, id, p), nil
}

// sees returns a function that reports whether an instance exists and the
// identity may read it. It reads only the instances that it is called for, each
// once.
func (g *guard) sees(ctx context.Context) (func(id string) (bool, error), error) {
	visible, err := g.visible(ctx, nf.ReadInstance)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	return func(id string) (bool, error) {
		if _, done := known[id]; !done {
			in, err := g.records.Instance(ctx, id)
			if nf.IgnoreNotFound(err) != nil {
				return false, err
			}
			known[id] = err == nil && visible(instanceScope(in))
		}
		return known[id], nil
	}, nil
}

// asker returns the identity in the context, or the anonymous one if access is
// open. Otherwise a context without an identity belongs to a request that
// bypassed authentication.
func (g *guard) asker(ctx context.Context) (nf.Identity, error) {
	id, ok := nf.IdentityOf(ctx)
	switch {
	case ok:
		return id, nil
	case g.authorizer.rules == nil:
		return nf.Anonymous(), nil
	}
	return id, unknown(errors.New("the request was not authenticated"))
}

// could reports whether the identity has the permission. It does not record a
// denial.
func (g *guard) could(ctx context.Context, p nf.Permission, s nf.Scope) (bool, error) {
	id, err := g.asker(ctx)
	return err == nil && g.authorizer.Allow(ctx, id, p, s) == nil, err
}

// own adds the identity to an idempotency key, so that a client cannot get the
// response of another client's request by using its key.
func (g *guard) own(ctx context.Context, key *nf.RequestKey) error {
	id, err := g.asker(ctx)
	if err == nil && key.Key != "" {
		key.Client = id.Client()
	}
	return err
}

// The scopes of objects.
func instanceScope(in nf.Instance) nf.Scope {
	return nf.Scope{Project: nf.ProjectOf(in.Project), Region: in.Region}
}

func operationScope(op nf.Operation) nf.Scope {
	return nf.Scope{Project: nf.ProjectOf(op.Project), Region: op.Region}
}

func regionScope(id string) nf.Scope { return nf.Scope{Region: id} }

func packageScope(p nf.Package) nf.Scope { return nf.Scope{Project: nf.ProjectOf(p.Project)} }

// absent returns the error for an object that does not exist or is hidden.
func absent(noun, id string) error {
	return nf.E(nf.NotFound, "get", noun+" "+strconv.Quote(id), nil)
}

// missing returns that error for an object that a request field names.
func missing(field, id string) error {
	return nf.E(nf.NotFound, "use", field+" "+id, nf.Violations{{Field: field, Message: fmt.Sprintf("%q does not exist", id)}})
}

// orAbsent replaces an nf.NotFound error by gone, so that the words do not
// depend on the origin.
func orAbsent(err, gone error) error {
	if err != nil && nf.KindOf(err) == nf.NotFound {
		return gone
	}
	return err
}

// keep returns the items whose scope is visible, in their order.
func keep[T any](items []T, scope func(T) nf.Scope, visible func(nf.Scope) bool) []T {
	out := make([]T, 0, len(items))
	for _, item := range items {
		if visible(scope(item)) {
			out = append(out, item)
		}
	}
	return out
}

// list is a list of items of which an identity sees those in visible scopes.
type list[T any] struct {
	items   iter.Seq2[T, error]
	scope   func(T) nf.Scope
	visible func(nf.Scope) bool // nil: all are visible
}

// shown yields the items that the identity sees, as show returns them, or the error if
// there is one.
func (l list[T]) shown(show func(T) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range l.items {
			if err == nil && l.visible != nil && !l.visible(l.scope(item)) {
				continue
			}
			if err == nil {
				item, err = show(item)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// failed yields an error only.
func failed[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}
