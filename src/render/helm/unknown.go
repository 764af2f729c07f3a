package helm

import (
	"bytes"
	"maps"
	"regexp"
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// allValues matches a use of all values of a chart at once.
var allValues = regexp.MustCompile(`\.Values(?:[^.\w]|$)`)

// checkUnknown reports the values of a request that have no effect, because the chart
// neither has nor mentions their name. It looks at the names on the top level only: a chart
// can print any map whole. If the templates use all values at once, it reports nothing.
func checkUnknown(c *chart.Chart, user map[string]any, strict bool, r *report) {
	known := knownValues(c)
	candidates := slices.DeleteFunc(slices.Sorted(maps.Keys(user)), func(name string) bool {
		_, is := c.Values[name]
		return is || known[name] || user[name] == nil
	})
	if len(candidates) == 0 || usesAll(c) {
		return
	}
	for _, name := range candidates[:min(len(candidates), maxShown)] {
		switch field := "parameters." + nf.Clip(name, maxQuote); {
		case mentions(c, []byte(name)):
		case strict:
			r.add(place{}, field, "the chart has no such value")
		default:
			r.warn("%s: the chart has no such value", field)
		}
	}
}

// knownValues returns the names of values that Helm itself reads.
func knownValues(c *chart.Chart) map[string]bool {
	known := map[string]bool{"global": true, "tags": true}
	for _, d := range c.Metadata.Dependencies {
		known[d.Name], known[d.Alias] = true, true
	}
	for _, d := range c.Dependencies() {
		known[d.Name()] = true
	}
	return known
}

// usesAll reports whether a template uses all values at once. The templates of
// dependencies can get the values of the chart, if they are a library.
func usesAll(c *chart.Chart) bool {
	for _, t := range c.Templates {
		if allValues.Match(t.Data) {
			return true
		}
	}
	return slices.ContainsFunc(c.Dependencies(), usesAll)
}

// mentions reports whether a name occurs in a chart's templates, its schema, or the
// conditions of its dependencies.
func mentions(c *chart.Chart, name []byte) bool {
	if bytes.Contains(c.Schema, name) {
		return true
	}
	for _, t := range c.Templates {
		if bytes.Contains(t.Data, name) {
			return true
		}
	}
	for _, d := range c.Metadata.Dependencies {
		if bytes.Contains([]byte(d.Condition), name) {
			return true
		}
	}
	return slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return mentions(d, name) })
}
