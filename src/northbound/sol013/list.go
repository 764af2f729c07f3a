package sol013

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// pageSize is the number of resources in a page.
const pageSize = 100

// marker is the query parameter that selects a page.
const marker = "nextpage_opaque_marker"

// Listing describes the lists of a kind of resources.
type Listing[T any] struct {
	Attributes Attributes
	ID         func(T) string // by which the resources are sorted
	// Indexed returns the attributes of the index that stand for the values of attributes,
	// by their names. Nil: the filter is applied to all resources.
	Indexed map[string]func(value string) nf.Attribute
	// Show returns the document of a resource as the request is to see it, or nil if the
	// resource is not one of the API. It returns nf.NotFound if the resource was removed
	// since it was read.
	Show func(*http.Request, T) (any, error)
}

// Answer writes a page of the resources that the request's filter selects, with the
// attributes that its selectors select. From yields the resources from a cursor on.
func (l Listing[T]) Answer(w http.ResponseWriter, r *http.Request, from func(nf.Cursor) iter.Seq2[T, error]) error {
	query := r.URL.Query()
	where, err := ParseFilter(query.Get("filter"))
	if err != nil {
		return err
	}
	view, err := l.Attributes.View(query)
	if err != nil {
		return err
	}
	out, last := []map[string]any{}, ""
	for item, err := range from(nf.Cursor{After: query.Get(marker), Expect: pageSize + 1, Where: where.indexed(l.Indexed)}) {
		if err != nil {
			return err
		}
		document, err := l.document(r, item)
		if err != nil {
			return err
		}
		if document == nil || !where.Matches(document) {
			continue
		}
		if len(out) == pageSize {
			query.Set(marker, last)
			w.Header().Set("Link", northbound.NextLink(r, query))
			break
		}
		out, last = append(out, view.Of(document)), l.ID(item)
	}
	return northbound.Answer(w, http.StatusOK, out)
}

// document returns the fields of a resource, or nil if it is not to be listed.
func (l Listing[T]) document(r *http.Request, item T) (map[string]any, error) {
	shown, err := l.Show(r, item)
	if shown == nil || err != nil {
		return nil, nf.IgnoreNotFound(err)
	}
	content, err := json.Marshal(shown)
	if err != nil {
		return nil, fmt.Errorf("cannot write a resource of the list: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("cannot read a resource of the list: %w", err)
	}
	return out, nil
}

func invalid(field, message string) error {
	return nf.E(nf.Invalid, "read", "the request", nf.Violations{{Field: field, Message: message}})
}
