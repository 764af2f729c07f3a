package native

import (
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const defaultLimit = 100

// page is one part of a collection.
type page[T any] struct {
	items []T
	next  string // the marker of the next page; empty on the last one
}

// paginate returns the page of a collection that the request's limit and marker
// ask for. Items are ordered by their key; the marker is the last key of the
// page before, so that items that come and go shift nothing.
func paginate[T any](r *http.Request, all []T, key func(T) string, keep func(T) bool) page[T] {
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = defaultLimit // the contract lets nothing pass that is not a number
	}
	if marker := query.Get("marker"); marker != "" {
		all = all[sort.Search(len(all), func(i int) bool { return key(all[i]) > marker }):]
	}
	out := page[T]{items: []T{}}
	for _, item := range all {
		if !keep(item) {
			continue
		}
		if len(out.items) == limit {
			out.next = key(out.items[limit-1])
			break
		}
		out.items = append(out.items, item)
	}
	return out
}

// link names the next page in a Link header.
func (p page[T]) link(w http.ResponseWriter, r *http.Request) {
	if p.next == "" {
		return
	}
	query := r.URL.Query()
	query.Set("marker", p.next)
	w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.EscapedPath(), query.Encode()))
}

// labelFilter returns the condition that the request's label parameters make:
// every one must be among the labels.
func labelFilter(r *http.Request) func(labels map[string]string) bool {
	wanted := r.URL.Query()["label"]
	return func(labels map[string]string) bool {
		for _, pair := range wanted {
			name, value, _ := strings.Cut(pair, "=")
			if have, ok := labels[name]; !ok || have != value {
				return false
			}
		}
		return true
	}
}

// each converts the items of a list; the result is never nil, so that it is []
// in JSON.
func each[T, U any](items []T, convert func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = convert(item)
	}
	return out
}

// list returns the items, [] in JSON when there are none.
func list(items []string) []string {
	if items == nil {
		return []string{}
	}
	return items
}

func invalid(field, message string) error {
	return nf.E(nf.Invalid, "read", "the request", nf.Violations{{Field: field, Message: message}})
}
