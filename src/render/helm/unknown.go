package helm

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// allValues matches a use of all values of a chart at once.
var allValues = regexp.MustCompile(`\.Values(?:[^.\w]|$)`)

// checkUnknown reports the values of a request that have no effect, because the chart
// neither has nor mentions their name. It looks at the names on the top level only: a chart
// can print any map whole. If one of the texts that Helm may execute uses all values at
// once, it reports nothing.
func checkUnknown(c *chart.Chart, user map[string]any, strict bool, r *report) {
	known := knownValues(c)
	candidates := slices.DeleteFunc(slices.Sorted(maps.Keys(user)), func(name string) bool {
		_, is := c.Values[name]
		return is || known[name] || user[name] == nil
	})
	if len(candidates) == 0 {
		return
	}
	var t templateTexts
	t.addValue(user)
	t.addChart(c)
	if slices.ContainsFunc(t, allValues.Match) {
		return
	}
	for _, name := range candidates[:min(len(candidates), maxShown)] {
		switch field := "parameters." + nf.Clip(name, maxQuote); {
		case t.mention([]byte(name)), mentions(c, []byte(name)):
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

// templateTexts are the texts that Helm may execute: templates and, since they
// can be arguments of the function tpl, files and values that contain an action.
type templateTexts [][]byte

const actionStart = "{{"

// addChart adds the texts of a chart and its subcharts. The templates of
// subcharts can get the values of the chart, if they are a library.
func (t *templateTexts) addChart(c *chart.Chart) {
	for _, file := range c.Templates {
		*t = append(*t, file.Data)
	}
	for _, file := range c.Files {
		if bytes.Contains(file.Data, []byte(actionStart)) {
			*t = append(*t, file.Data)
		}
	}
	t.addValue(c.Values)
	for _, d := range c.Dependencies() {
		t.addChart(d)
	}
}

// addValue adds the texts in a value.
func (t *templateTexts) addValue(v any) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, actionStart) {
			*t = append(*t, []byte(v))
		}
	case map[string]any:
		for _, inner := range v {
			t.addValue(inner)
		}
	case []any:
		for _, inner := range v {
			t.addValue(inner)
		}
	}
}

// mention reports whether a name occurs in one of the texts.
func (t *templateTexts) mention(name []byte) bool {
	return slices.ContainsFunc(*t, func(text []byte) bool { return bytes.Contains(text, name) })
}

// mentions reports whether a name occurs in the schema of a chart or of a
// subchart, or in the conditions of its dependencies.
func mentions(c *chart.Chart, name []byte) bool {
	if bytes.Contains(c.Schema, name) {
		return true
	}
	for _, d := range c.Metadata.Dependencies {
		if bytes.Contains([]byte(d.Condition), name) {
			return true
		}
	}
	return slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return mentions(d, name) })
}
