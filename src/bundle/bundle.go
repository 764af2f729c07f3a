package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/multicloud-k8s/k8splugin/src/budget"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config configures Bundles. KV, Packages and NewID are required.
type Config struct {
	KV       store.KV
	Packages Packages
	Limits   render.Limits    // of an archive; default render.DefaultLimits
	NewID    func() string    // returns a new upload name each time
	Clock    func() time.Time // default time.Now
	Memory   *budget.Budget   // for checking uploads and for composing packages; default: a separate one
}

// Packages stores composed packages.
type Packages interface {
	// Upload validates an archive and stores it under as.ID. If the id is
	// taken, it replaces the content. Content may be store.Staged.
	Upload(ctx context.Context, as nf.Package, content io.Reader) (kept nf.Package, created bool, err error)
	// Package returns a package, or nf.NotFound.
	Package(ctx context.Context, id string) (nf.Package, error)
	// RemovePackage deletes a package. It returns nf.Conflict while instances
	// use it.
	RemovePackage(ctx context.Context, id string) error
}

// Bundles stores resource bundles. It is safe for concurrent use.
type Bundles struct {
	cfg         Config
	definitions store.Table[Definition]
	profiles    store.Table[Profile]
	templates   store.Table[Template]
	connections store.Table[Connection]
	composed    store.Table[composition]
	blobs       store.Blobs
}

// New returns Bundles on a store. It returns an error if a required field of
// cfg is missing.
func New(cfg Config) (*Bundles, error) {
	if cfg.KV == nil || cfg.Packages == nil || cfg.NewID == nil {
		return nil, errors.New("cannot create the resource bundles: KV, Packages and NewID are required")
	}
	if cfg.Limits == (render.Limits{}) {
		cfg.Limits = render.DefaultLimits()
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Memory == nil {
		cfg.Memory = budget.New(2 * cfg.Limits.Memory) // a package is composed of the files of two archives
	}
	return &Bundles{
		cfg:         cfg,
		definitions: store.NewTable[Definition](cfg.KV, "onap/definitions/", "definition"),
		profiles:    store.NewTable[Profile](cfg.KV, "onap/profiles/", "profile"),
		templates:   store.NewTable[Template](cfg.KV, "onap/templates/", "config template"),
		connections: store.NewTable[Connection](cfg.KV, "onap/connections/", "connection"),
		composed:    store.NewTable[composition](cfg.KV, "onap/composed/", "composed package"),
		blobs:       store.NewBlobs(cfg.KV),
	}, nil
}

// Key identifies a profile of a definition.
type Key struct {
	Name    string `json:"name"`    // of the definition
	Version string `json:"version"` // of the definition
	Profile string `json:"profile"`
}

func (k Key) id() string { return join(k.Name, k.Version, k.Profile) }

// TemplateKey identifies a configuration template of a definition.
type TemplateKey struct {
	Name     string // of the definition
	Version  string // of the definition
	Template string
}

func (k TemplateKey) id() string { return join(k.Name, k.Version, k.Template) }

// Content describes an uploaded archive. The zero value means that there is
// none.
type Content struct {
	Digest string `json:"digest,omitempty"` // "sha256:<hex>" of its bytes
	Size   int64  `json:"size,omitempty"`
	Upload string `json:"upload,omitempty"` // name of the upload that references it in the store
}

func (c Content) holder() string { return "bundle/" + c.Upload }

const maxNameLength = 256 // bytes

// checkName returns a violation unless the text is a valid name. ONAP accepts
// any text; this rejects names that are empty, longer than maxNameLength, or
// not printable.
func checkName(field, name string) nf.Violations {
	switch {
	case name == "":
		return nf.Violations{{Field: field, Message: "is missing"}}
	case len(name) > maxNameLength:
		return nf.Violations{{Field: field, Message: fmt.Sprintf("is longer than %d bytes", maxNameLength)}}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return nf.Violations{{Field: field, Message: "contains characters that cannot be printed"}}
	}
	return nil
}

func checkNames(op, subject string, names ...[2]string) error {
	var v nf.Violations
	for _, name := range names {
		v = append(v, checkName(name[0], name[1])...)
	}
	if len(v) > 0 {
		return nf.E(nf.Invalid, op, subject, v)
	}
	return nil
}

// maxPart limits the length of one part of a key: four parts fit into a store
// key.
const maxPart = 100

// join returns an id for a list of names. Different lists have different ids.
// The id of a shorter list followed by a slash is a prefix of the ids of its
// extensions.
func join(names ...string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		part := strings.ReplaceAll(url.PathEscape(name), "~", "%7E")
		if len(part) > maxPart {
			sum := sha256.Sum256([]byte(name))
			part = "~" + hex.EncodeToString(sum[:16])
		}
		parts[i] = part
	}
	return strings.Join(parts, "/")
}
