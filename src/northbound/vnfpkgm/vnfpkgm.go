package vnfpkgm

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Packages manages packages.
type Packages interface {
	// CreatePackage stores a package without content in p.Project, under p.ID.
	CreatePackage(ctx context.Context, p nf.Package) (nf.Package, error)
	// Package returns a package, or nf.NotFound.
	Package(ctx context.Context, id string) (nf.Package, error)
	// PackagesFrom yields the packages, sorted by id.
	PackagesFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Package, error]
	// UpdatePackage edits Disabled and UserData of a package. Edit may be called more
	// than once.
	UpdatePackage(ctx context.Context, id string, edit func(*nf.Package) error) (nf.Package, error)
	// RemovePackage deletes a package. It returns nf.Conflict while something uses it.
	RemovePackage(ctx context.Context, id string) error
}

// Archives stores and reads the content of packages.
type Archives interface {
	// MayChange returns nf.NotFound, or the error for a caller that may not change a
	// package.
	MayChange(ctx context.Context, id string) error
	// Onboard gives the package p.ID its first content, which is of p.Kind. It calls
	// fetch only for a caller that may change the package. It returns nf.Conflict or
	// nf.Busy if the package has content or is getting some, and nf.Invalid with the
	// names of wrong files.
	Onboard(ctx context.Context, p nf.Package, fetch func(ctx context.Context, into func(context.Context, io.Reader) error) error) (nf.Package, error)
	// ContentAt returns a package and its archive of p.Size bytes. It returns
	// nf.Conflict if it has no content yet.
	ContentAt(ctx context.Context, id string) (nf.Package, io.ReaderAt, error)
	// File returns a package and a file of its archive with its size in bytes. The
	// caller closes it.
	File(ctx context.Context, id, name string) (nf.Package, io.ReadCloser, int64, error)
	// InUse reports whether something uses a package.
	InUse(ctx context.Context, id string) (bool, error)
}

// Source is where a package is fetched from.
type Source struct {
	URL      string
	Username string
	Password nf.Secret
}

// Fetch passes the content of a source to into. It returns nf.Forbidden for a host that
// the operator has not allowed, and nf.Unreachable, nf.NotFound and nf.TooLarge.
type Fetch func(ctx context.Context, from Source, into func(context.Context, io.Reader) error) error

// Config configures the API. Packages, Archives and Fetch are required.
type Config struct {
	Packages Packages
	Archives Archives
	Fetch    Fetch
	NewID    func() string    // default: a random UUID
	Clock    func() time.Time // default: time.Now
	Logger   *slog.Logger     // default: discard
}

// API serves VNF packages.
type API struct {
	packages packages
	contents contents
}

var _ northbound.API = (*API)(nil)

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Packages == nil || cfg.Archives == nil || cfg.Fetch == nil {
		return nil, errors.New("cannot create the API of VNF packages: Packages, Archives and Fetch are required")
	}
	if cfg.NewID == nil {
		cfg.NewID = newUUID
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	ps := packages{store: cfg.Packages, archives: cfg.Archives, newID: cfg.NewID, now: cfg.Clock}
	return &API{packages: ps, contents: contents{packages: ps, fetch: cfg.Fetch, logger: cfg.Logger}}, nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return nf.UUID(b, 4)
}

const (
	root = "/vnfpkgm/v1/vnf_packages"
	one  = root + "/{csar_id}"
)

// Routes adds the API's paths.
func (a *API) Routes(r *mux.Router) {
	on := func(method, path string, h northbound.Handler) { r.Handle(path, h).Methods(method) }
	on(http.MethodPost, root, a.packages.create)
	on(http.MethodGet, root, a.packages.list)
	on(http.MethodGet, one, a.packages.get)
	on(http.MethodPatch, one, a.packages.update)
	on(http.MethodDelete, one, a.packages.remove)
	on(http.MethodPut, one+"/package_content", a.contents.upload)
	on(http.MethodGet, one+"/package_content", a.contents.download)
	on(http.MethodPost, one+"/package_content/upload_from_uri", a.contents.uploadFrom)
	on(http.MethodGet, one+"/vnfd", a.contents.vnfd)
	on(http.MethodGet, one+"/artifacts/{artifact_path:.+}", a.contents.artifact)
}
