package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sort"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

const defaultLimit = 100

// page is one page of a collection.
type page[T any] struct {
	items []T
	next  string // the marker of the next page; empty on the last one
	link  string // to the next page
}

// paginate returns the page of a collection for the request's limit and marker.
// Items must be sorted by key. The marker is the last key of the previous page,
// so that created or deleted items do not shift the next page.
func paginate[T any](r *http.Request, all []T, key func(T) string, keep func(T) bool) page[T] {
	if marker := r.URL.Query().Get("marker"); marker != "" {
		all = all[sort.Search(len(all), func(i int) bool { return key(all[i]) > marker }):]
	}
	out, _ := collect(r, func(yield func(T, error) bool) {
		for _, item := range all {
			if keep(item) && !yield(item, nil) {
				return
			}
		}
	}, key)
	return out
}

// paginateFrom returns the page of the items of a stored collection that have the
// attributes. From yields the items after a cursor, sorted by key. It reads only as many
// as the page needs.
func paginateFrom[T summarized](r *http.Request, where []nf.Attribute, from func(nf.Cursor) iter.Seq2[T, error], key func(T) string) (page[T], error) {
	c := nf.Cursor{After: r.URL.Query().Get("marker"), Expect: limitOf(r) + 1, Where: where}
	return collect(r, kept(from(c), func(item T) bool { return item.Summary().Has(where) }), key)
}

// summarized is an item that lists select by its attributes.
type summarized interface{ Summary() nf.Summary }

// kept yields the items of a sequence that keep reports true for.
func kept[T any](items iter.Seq2[T, error], keep func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range items {
			if (err != nil || keep(item)) && !yield(item, err) {
				return
			}
		}
	}
}

// limitOf returns the number of items that a page may have.
func limitOf(r *http.Request) int {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		return defaultLimit // the contract allows only numbers
	}
	return limit
}

// collect returns the first items of a sequence, up to the request's limit.
func collect[T any](r *http.Request, items iter.Seq2[T, error], key func(T) string) (page[T], error) {
	query, limit := r.URL.Query(), limitOf(r)
	out := page[T]{items: []T{}}
	for item, err := range items {
		if err != nil {
			return out, err
		}
		if len(out.items) == limit {
			out.next = key(out.items[limit-1])
			query.Set("marker", out.next)
			out.link = northbound.NextLink(r, query)
			break
		}
		out.items = append(out.items, item)
	}
	return out, nil
}

// answerPage responds with a page. The items are in the named field.
func answerPage[T, D any](w http.ResponseWriter, name string, p page[T], document func(T) D) error {
	if p.link != "" {
		w.Header().Set("Link", p.link)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // as northbound.Answer does
	fmt.Fprintf(&out, "{%q:", name)
	err := encoder.Encode(wire.List(p.items, document))
	out.Truncate(max(0, out.Len()-1)) // the encoder ends a line
	if p.next != "" {
		out.WriteString(`,"next":`)
		err = errors.Join(err, encoder.Encode(p.next))
		out.Truncate(max(0, out.Len()-1))
	}
	if err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	out.WriteString("}\n")
	northbound.AnswerEncoded(w, http.StatusOK, out.Bytes())
	return nil
}

// wanted returns the attributes that the named parameters of a request require.
func wanted(r *http.Request, parameters ...string) []nf.Attribute {
	query := r.URL.Query()
	var out []nf.Attribute
	for _, name := range parameters {
		if query.Has(name) {
			out = append(out, nf.Attribute{Name: name, Value: query.Get(name)})
		}
	}
	return out
}

func invalid(field, message string) error {
	return nf.E(nf.Invalid, "read", "the request", nf.Violations{{Field: field, Message: message}})
}
