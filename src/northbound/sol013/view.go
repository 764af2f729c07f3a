package sol013

import (
	"net/url"
	"slices"
	"strings"
)

// Attributes are those of a kind of resources.
type Attributes struct {
	Mandatory []string // lists always have them
	Excluded  []string // lists leave them out by default
}

// View selects attributes of the resources in a list.
type View struct {
	only []string // in addition to the mandatory ones; nil: all
	not  []string
}

// View returns the view that the selectors of a query ask for: all_fields, fields,
// exclude_fields and exclude_default. It returns nf.Invalid.
func (a Attributes) View(query url.Values) (View, error) {
	all, def := query.Has("all_fields"), query.Has("exclude_default")
	fields, excluded := split(query.Get("fields")), split(query.Get("exclude_fields"))
	switch {
	case all && (def || fields != nil || excluded != nil):
		return View{}, invalid("all_fields", "cannot be combined with other selectors")
	case excluded != nil && (def || fields != nil):
		return View{}, invalid("exclude_fields", "cannot be combined with other selectors")
	case all:
		return View{}, nil
	case excluded != nil:
		return View{not: slices.DeleteFunc(excluded, func(name string) bool { return slices.Contains(a.Mandatory, name) })}, nil
	case fields != nil && !def:
		return View{only: slices.Concat(a.Mandatory, fields)}, nil
	}
	return View{not: slices.DeleteFunc(slices.Clone(a.Excluded), func(name string) bool { return slices.Contains(fields, name) })}, nil
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

// Of deletes the attributes of a document that are not selected, and returns it.
func (v View) Of(document map[string]any) map[string]any {
	for name := range document {
		if v.only != nil && !slices.Contains(v.only, name) || slices.Contains(v.not, name) {
			delete(document, name)
		}
	}
	return document
}
