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

// Engine is what carries instances through their lives.
type Engine interface {
	Changes
	DayTwo
	Previews
	Remedies
	Records
}

// Records tell what is and what was done.
type Records interface {
	Instances
	Operations
}

// Catalog is what keeps regions and packages.
type Catalog interface {
	Regions
	Packages
	// Users yields the ids of the instances that hold a region, or else a
	// package, in their order.
	Users(ctx context.Context, of nf.Holding) iter.Seq2[string, error]
	// Enlist keeps a region whether or not its cluster can be reached now.
	Enlist(ctx context.Context, r nf.Region) (nf.Region, error)
	// Lint reads a package's archive, and keeps nothing.
	Lint(ctx context.Context, archive []byte) (nf.Package, error)
}

// Changes begin operations. Under a key that was used before they return the
// operation that it began, whatever else the request says.
type Changes interface {
	Instantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Operation, error)
	Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error)
	Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error)
	Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error)
}

// DayTwo is what is done with what is up.
type DayTwo interface {
	Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error)
	Test(ctx context.Context, id string, req nf.TestRequest) (nf.Operation, error)
	Adopt(ctx context.Context, req nf.AdoptRequest) (nf.Operation, error)
}

// Previews tell what changes would do.
type Previews interface {
	PreviewInstantiate(ctx context.Context, req nf.InstantiateRequest) (nf.Preview, error)
	PreviewUpgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Preview, error)
	PreviewRollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Preview, error)
}

// Remedies are for operations that do not go well.
type Remedies interface {
	Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error)
	Cancel(ctx context.Context, operation string) (nf.Operation, error)
}

// Instances tell of instances.
type Instances interface {
	Instance(ctx context.Context, id string) (nf.Instance, error)
	Instances(ctx context.Context) ([]nf.Instance, error)
	Revisions(ctx context.Context, id string) ([]nf.Revision, error)
	Revision(ctx context.Context, id string, number int) (nf.Revision, error)
	Health(ctx context.Context, id string) ([]nf.Health, error)
}

// Operations tell of operations.
type Operations interface {
	Operation(ctx context.Context, id string) (nf.Operation, error)
	Operations(ctx context.Context) ([]nf.Operation, error)
	Changes(ctx context.Context, id string) ([]nf.Change, error)
	Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error]
}

// Regions keep cloud regions.
type Regions interface {
	Register(ctx context.Context, r nf.Region) (nf.Region, error)
	Region(ctx context.Context, id string) (nf.Region, error)
	Regions(ctx context.Context) ([]nf.Region, error)
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
	RemoveRegion(ctx context.Context, id string) error
}

// Packages keep packages.
type Packages interface {
	Upload(ctx context.Context, as nf.Package, content io.Reader) (p nf.Package, created bool, err error)
	Package(ctx context.Context, id string) (nf.Package, error)
	Packages(ctx context.Context) ([]nf.Package, error)
	Content(ctx context.Context, id string) (nf.Package, io.ReadCloser, error)
	RemovePackage(ctx context.Context, id string) error
}

// States tell how regions are doing.
type States interface {
	RegionState(ctx context.Context, id string) (nf.RegionState, error)
}

// Audits tell what was done.
type Audits interface {
	// Entries yields the entries that the filter selects, the newest first.
	Entries(ctx context.Context, f nf.AuditFilter) iter.Seq2[nf.AuditEntry, error]
}

// GuardConfig is what a guard stands around. All fields are required.
type GuardConfig struct {
	Authorizer *Authorizer
	Engine     Engine
	Catalog    Catalog
	States     States
	Audits     Audits
}

// Guard is the engine and the catalog as the identity in the context may use
// them. Its methods have the signatures and the errors of what it guards, and
// besides: nf.Unauthenticated for a context without an identity, nf.Forbidden
// for what one may see and not do, and nf.NotFound for what one may not see, in
// the same words as for what does not exist. Lists have what one may see. It is
// safe for concurrent use.
type Guard struct{ cfg GuardConfig }

var (
	_ Engine  = (*Guard)(nil)
	_ Catalog = (*Guard)(nil)
	_ States  = (*Guard)(nil)
	_ Audits  = (*Guard)(nil)
)

// NewGuard returns a guard.
func NewGuard(cfg GuardConfig) (*Guard, error) {
	if cfg.Authorizer == nil || cfg.Engine == nil || cfg.Catalog == nil || cfg.States == nil || cfg.Audits == nil {
		return nil, errors.New("cannot make a guard: Authorizer, Engine, Catalog, States and Audits are required")
	}
	return &Guard{cfg: cfg}, nil
}

// May returns nil when the identity in the context has the permission in the
// scope, and nf.Forbidden or nf.Unauthenticated otherwise. It is for what the
// guard has no method for. The subjects are ids, for the audit.
func (g *Guard) May(ctx context.Context, p nf.Permission, s nf.Scope, subjects ...string) error {
	id, err := g.asker(ctx)
	if err != nil {
		return err
	}
	nf.TrailOf(ctx).Ask(p, s, subjects...)
	return g.cfg.Authorizer.Allow(ctx, id, p, s)
}

// see returns hidden when the identity may not read what is in the scope.
func (g *Guard) see(ctx context.Context, p nf.Permission, s nf.Scope, hidden error) error {
	id, err := g.asker(ctx)
	if err != nil || g.cfg.Authorizer.Allow(ctx, id, p, s) == nil {
		return err
	}
	trail := nf.TrailOf(ctx)
	trail.Ask(p, s)
	trail.Hide()
	return hidden
}

// visible returns the scopes that the identity may read.
func (g *Guard) visible(ctx context.Context, p nf.Permission) (func(nf.Scope) bool, error) {
	id, err := g.asker(ctx)
	if err != nil {
		return nil, err
	}
	return g.cfg.Authorizer.Visible(ctx, id, p), nil
}

// asker returns who asks. When access is open nobody need say it; otherwise a
// context without an identity is a request that came past the authentication.
func (g *Guard) asker(ctx context.Context) (nf.Identity, error) {
	id, ok := nf.IdentityOf(ctx)
	switch {
	case ok:
		return id, nil
	case g.cfg.Authorizer.rules == nil:
		return nf.Anonymous(), nil
	}
	return id, unknown(errors.New("nobody was asked who it is"))
}

// The scopes of things.
func instanceScope(in nf.Instance) nf.Scope {
	return nf.Scope{Project: nf.ProjectOf(in.Project), Region: in.Region}
}

func operationScope(op nf.Operation) nf.Scope {
	return nf.Scope{Project: nf.ProjectOf(op.Project), Region: op.Region}
}

func regionScope(id string) nf.Scope { return nf.Scope{Region: id} }

func packageScope(p nf.Package) nf.Scope { return nf.Scope{Project: nf.ProjectOf(p.Project)} }

// absent is what is said of a thing that does not exist, and of one that must
// seem so.
func absent(noun, id string) error {
	return nf.E(nf.NotFound, "get", noun+" "+strconv.Quote(id), nil)
}

// missing is the same, of a thing that a field of the request names.
func missing(field, id string) error {
	return nf.E(nf.NotFound, "use", field+" "+id, nf.Violations{{Field: field, Message: fmt.Sprintf("%q does not exist", id)}})
}

// orAbsent says of everything that is missing that it is so in our words.
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
