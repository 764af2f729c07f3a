package schema

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The maximum sizes in bytes that a Source may return. It must not read more.
const (
	MaxIndex    = 1 << 20
	MaxDocument = 16 << 20
)

// Source reads from a region. Its errors are nf.Errors. The kinds nf.NotFound,
// nf.Unsupported, nf.Failed and nf.TooLarge mean that the region does not have
// or does not return the data; objects are then checked without it. All other
// kinds end the Check.
type Source interface {
	// Index returns the response to GET /openapi/v3, as JSON of at most MaxIndex
	// bytes.
	Index(ctx context.Context) ([]byte, error)

	// Document returns the response to GET url, a path below /openapi/v3 with a
	// query, as JSON of at most MaxDocument bytes.
	Document(ctx context.Context, url string) ([]byte, error)

	// Mutating returns the MutatingWebhookConfigurations and
	// MutatingAdmissionPolicies of the region. It is called only if an object
	// would be rejected.
	Mutating(ctx context.Context) ([]*unstructured.Unstructured, error)

	// Live returns an object of the region, or nf.NotFound. It is called only
	// for an object that exists and would be rejected.
	Live(ctx context.Context, ref nf.Ref) (*unstructured.Unstructured, error)
}

// Region checks objects for one region. It is safe for concurrent use.
type Region struct {
	cache  *Cache
	source Source
}

// Region returns the checker for the region that source reads from.
func (c *Cache) Region(source Source) *Region {
	return &Region{cache: c, source: source}
}

// index returns the URLs of the region's documents, by path in the index.
func (r *Region) index(ctx context.Context) (map[string]string, error) {
	text, err := r.source.Index(ctx)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxIndex {
		return nil, nf.E(nf.TooLarge, "read", "the OpenAPI index", errLimit)
	}
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, nf.E(nf.Unsupported, "read", "the OpenAPI index", err)
	}
	urls := make(map[string]string, len(index.Paths))
	for name, p := range index.Paths {
		if isBelow(p.URL) {
			urls[name] = p.URL
		}
	}
	return urls, nil
}

// isBelow reports whether a URL is only a path below /openapi/v3, so that a
// region cannot direct requests elsewhere.
func isBelow(link string) bool {
	file, _, _ := strings.Cut(link, "?")
	return strings.HasPrefix(file, "/openapi/v3/") && path.Clean(file) == file && !strings.ContainsAny(link, "#\\%\r\n")
}

// document returns one document of the region. It is not read if the cache has
// one with the digest that the link claims. A false claim affects only the
// region that makes it.
func (r *Region) document(ctx context.Context, link string) (*entry, error) {
	if d, ok := claimed(link); ok {
		if e := r.cache.get(d); e != nil {
			return e, nil
		}
	}
	text, err := r.source.Document(ctx, link)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxDocument {
		return nil, nf.E(nf.TooLarge, "read", "an OpenAPI document", errLimit)
	}
	return r.cache.load(ctx, sha512.Sum512(text), func() (*document, error) { return parseDocument(text) })
}

// claimed returns the digest in a link, where API servers put the SHA-512 of
// the document.
func claimed(link string) (d digest, ok bool) {
	u, err := url.Parse(link)
	if err != nil {
		return d, false
	}
	hash, err := hex.DecodeString(u.Query().Get("hash"))
	return d, err == nil && copy(d[:], hash) == len(d) && len(hash) == len(d)
}

// kind returns the compiled schema of a kind, and caches it for the Check.
func (c *check) kind(ctx context.Context, gvk schema.GroupVersionKind) (compiled, error) {
	if k, ok := c.kinds[gvk]; ok {
		return k, nil
	}
	k, err := c.published(ctx, gvk)
	if err == nil {
		c.kinds[gvk] = k
	}
	return k, err
}

// published returns the schema of a kind that the region serves.
func (c *check) published(ctx context.Context, gvk schema.GroupVersionKind) (compiled, error) {
	e, unread, err := c.documentOf(ctx, gvk.GroupVersion())
	if err != nil || unread != nil {
		return compiled{err: unread}, err
	}
	k, unusable, err := c.region.cache.kind(ctx, e, gvk)
	return compiled{k, unusable}, err
}

// documentOf returns the document of a group and version, or the reason why
// there is none.
func (c *check) documentOf(ctx context.Context, gv schema.GroupVersion) (e *entry, unread, err error) {
	if c.urls == nil {
		urls, err := c.region.index(ctx)
		if err != nil && isAway(err) {
			return nil, nil, err
		}
		if c.urls, c.unread = urls, err; urls == nil {
			c.urls = map[string]string{}
		}
	}
	name := "apis/" + gv.String()
	if gv.Group == "" {
		name = "api/" + gv.Version
	}
	link, ok := c.urls[name]
	if !ok {
		return nil, cmp.Or(c.unread, errNotServed), nil
	}
	e, err = c.region.document(ctx, link)
	if err != nil && !isAway(err) {
		return nil, err, nil
	}
	return e, nil, err
}

// define compiles the schemas of the CustomResourceDefinitions among the
// objects. It ignores an existing CRD without an owner: that one is not
// changed, so the region's schema is used.
func (c *check) define(ctx context.Context, objects []Object) error {
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		if gvk != definitionKind || o.Exists && nf.OwnerOf(o.GetLabels()).ID == "" {
			continue
		}
		spec, err := json.Marshal(o.Object["spec"])
		if err != nil {
			continue // reported when the object is checked
		}
		e, err := c.defined(ctx, spec)
		if err != nil {
			return err
		}
		for gvk := range e.document.kinds {
			if !strings.Contains(gvk.Group, ".") {
				continue // a built-in group, which a CRD does not replace
			}
			k, unusable, err := c.region.cache.kind(ctx, e, gvk)
			if err != nil {
				return err
			}
			c.kinds[gvk] = compiled{k, unusable}
		}
	}
	return nil
}

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// defined returns the document of a CRD's spec. As it includes the region's
// schema of metadata, its digest covers both.
func (c *check) defined(ctx context.Context, spec []byte) (*entry, error) {
	own, _, err := c.documentOf(ctx, definitionKind.GroupVersion())
	if err != nil {
		return nil, err
	}
	h := sha512.New()
	h.Write([]byte("CustomResourceDefinition "))
	var metadata *document
	if own != nil && own.err == nil {
		h.Write(own.digest[:])
		metadata = own.document
	}
	h.Write(spec)
	return c.region.cache.load(ctx, digest(h.Sum(nil)), func() (*document, error) { return definition(spec, metadata) })
}

// definition creates a document from the spec of a CustomResourceDefinition. It
// copies the schemas of metadata from another document, which may be nil.
func definition(text []byte, metadata *document) (*document, error) {
	var spec struct {
		Group    string
		Names    struct{ Kind string }
		Preserve bool `json:"preserveUnknownFields"`
		Versions []struct {
			Name   string
			Served bool
			Schema struct {
				OpenAPI json.RawMessage `json:"openAPIV3Schema"`
			}
			Subresources struct{ Status *struct{} }
		}
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("cannot read definition: %w", err)
	}
	d := newDocument()
	if metadata != nil {
		for name, component := range metadata.components {
			if strings.HasPrefix(name, meta) {
				d.components[name] = component
			}
		}
	}
	for _, v := range spec.Versions {
		gvk := schema.GroupVersionKind{Group: spec.Group, Version: v.Name, Kind: spec.Names.Kind}
		if !v.Served || len(v.Schema.OpenAPI) == 0 {
			continue
		}
		s := &served{component: customName(gvk), status: v.Subresources.Status != nil}
		if spec.Preserve {
			s.compiled, s.err = true, errNoSchema
		}
		d.kinds[gvk], d.components[s.component] = s, v.Schema.OpenAPI
		d.size.Add(int64(len(v.Schema.OpenAPI)))
	}
	return d, nil
}
