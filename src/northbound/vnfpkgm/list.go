package vnfpkgm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// pageSize is the number of packages in a page.
const pageSize = 100

// marker is the query parameter that selects a page.
const marker = "nextpage_opaque_marker"

func (ps packages) list(w http.ResponseWriter, r *http.Request) error {
	ctx, query := r.Context(), r.URL.Query()
	where, err := parseFilter(query.Get("filter"))
	if err != nil {
		return err
	}
	view, err := viewOf(query)
	if err != nil {
		return err
	}
	out := []map[string]any{}
	last := ""
	from := nf.Cursor{After: query.Get(marker), Expect: pageSize + 1}
	for p, err := range ps.store.PackagesFrom(ctx, from) {
		if err != nil {
			return err
		}
		if !isVNF(p) {
			continue
		}
		shown, err := ps.info(ctx, p)
		if nf.KindOf(err) == nf.NotFound {
			continue // removed since it was read
		}
		if err != nil {
			return err
		}
		document, err := asMap(shown)
		if err != nil {
			return err
		}
		if !where.matches(document) {
			continue
		}
		if len(out) == pageSize {
			query.Set(marker, last)
			w.Header().Set("Link", northbound.NextLink(r, query))
			break
		}
		out, last = append(out, view.of(document)), p.ID
	}
	return northbound.Answer(w, http.StatusOK, out)
}

// asMap returns a document by its fields.
func asMap(of info) (map[string]any, error) {
	content, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("cannot write the package: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, fmt.Errorf("cannot read the package: %w", err)
	}
	return out, nil
}

// The attributes that lists leave out by default, and those that they always have.
var (
	complexAttributes = []string{"checksum", "softwareImages", "additionalArtifacts", "userDefinedData"}
	mandatory         = []string{"id", "onboardingState", "operationalState", "usageState", "_links"}
)

// view selects attributes of the packages in a list.
type view struct {
	only []string // besides the mandatory ones; nil: all
	not  []string
}

// viewOf returns the view that the selectors of a request ask for.
func viewOf(query url.Values) (view, error) {
	all, def := query.Has("all_fields"), query.Has("exclude_default")
	fields, excluded := split(query.Get("fields")), split(query.Get("exclude_fields"))
	switch {
	case all && (def || fields != nil || excluded != nil):
		return view{}, invalid("all_fields", "cannot be combined with other selectors")
	case excluded != nil && (def || fields != nil):
		return view{}, invalid("exclude_fields", "cannot be combined with other selectors")
	case all:
		return view{}, nil
	case excluded != nil:
		return view{not: slices.DeleteFunc(excluded, func(name string) bool { return slices.Contains(mandatory, name) })}, nil
	case fields != nil && !def:
		return view{only: slices.Concat(mandatory, fields)}, nil
	}
	return view{not: slices.DeleteFunc(slices.Clone(complexAttributes), func(name string) bool { return slices.Contains(fields, name) })}, nil
}

// split returns the attributes of a list, by their first segments: the parts of an
// attribute are shown together.
func split(list string) []string {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		if name, _, _ = strings.Cut(strings.TrimSpace(name), "/"); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// of returns the selected attributes of a document.
func (v view) of(document map[string]any) map[string]any {
	for name := range document {
		if v.only != nil && !slices.Contains(v.only, name) || slices.Contains(v.not, name) {
			delete(document, name)
		}
	}
	return document
}

func invalid(field, message string) error {
	return nf.E(nf.Invalid, "read", "the request", nf.Violations{{Field: field, Message: message}})
}
