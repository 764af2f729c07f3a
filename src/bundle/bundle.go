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

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Config is what the bundles are made of. KV, Packages and NewID are required.
type Config struct {
	KV       store.KV
	Packages Packages
	Limits   render.Limits    // of an archive; default render.DefaultLimits
	NewID    func() string    // names of uploads, each new
	Clock    func() time.Time // default time.Now
}

// Packages is where composed packages are kept.
type Packages interface {
	// Upload checks an archive and keeps it under the ID of as; with an id that
	// is taken it replaces the content.
	Upload(ctx context.Context, as nf.Package, content io.Reader) (kept nf.Package, created bool, err error)
	// Package returns a package, or nf.NotFound.
	Package(ctx context.Context, id string) (nf.Package, error)
	// RemovePackage removes a package; nf.Conflict while instances use it.
	RemovePackage(ctx context.Context, id string) error
}

// Bundles is the resource bundles of one store. It is safe for concurrent use.
type Bundles struct {
	cfg         Config
	definitions store.Table[Definition]
	profiles    store.Table[Profile]
	templates   store.Table[Template]
	connections store.Table[Connection]
	composed    store.Table[composition]
	blobs       store.Blobs
}

// New returns the bundles of a store.
func New(cfg Config) (*Bundles, error) {
	if cfg.KV == nil || cfg.Packages == nil || cfg.NewID == nil {
		return nil, errors.New("cannot make the resource bundles: KV, Packages and NewID are required")
	}
	if cfg.Limits == (render.Limits{}) {
		cfg.Limits = render.DefaultLimits()
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
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

// Key names a profile of a definition.
type Key struct {
	Name    string `json:"name"`    // of the definition
	Version string `json:"version"` // of the definition
	Profile string `json:"profile"`
}

func (k Key) id() string { return join(k.Name, k.Version, k.Profile) }

// TemplateKey names a configuration template of a definition.
type TemplateKey struct {
	Name     string // of the definition
	Version  string // of the definition
	Template string
}

func (k TemplateKey) id() string { return join(k.Name, k.Version, k.Template) }

// Content is an archive that was uploaded. The zero value is none.
type Content struct {
	Digest string `json:"digest,omitempty"` // "sha256:<hex>" of its bytes
	Size   int64  `json:"size,omitempty"`
	Upload string `json:"upload,omitempty"` // names the upload that holds it in the store
}

func (c Content) holder() string { return "bundle/" + c.Upload }

const maxNameLength = 256 // bytes

// checkName returns a violation unless a text can name a thing: ONAP takes
// anything, and so do we, but for what cannot be read or is no name at all.
func checkName(field, name string) nf.Violations {
	switch {
	case name == "":
		return nf.Violations{{Field: field, Message: "is missing"}}
	case len(name) > maxNameLength:
		return nf.Violations{{Field: field, Message: fmt.Sprintf("is longer than %d bytes", maxNameLength)}}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return nf.Violations{{Field: field, Message: "holds characters that cannot be printed"}}
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

// maxPart is how long one part of a key may be: four fit a key of the store.
const maxPart = 100

// join returns the id of what has several names. No two lists of names have the
// same, and a shorter list and a slash is the beginning of a longer one.
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
