package helm

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// userValues returns the values from the request: the parameters, overlaid with
// the overrides.
func userValues(in nf.Inputs, r *report) map[string]any {
	values, _ := normalize(in.Parameters).(map[string]any)
	if values == nil {
		values = map[string]any{}
	}
	override(values, in.Overrides, r)
	return values
}

// normalize returns a copy of a JSON value in the types that templates expect. A
// whole number becomes an integer, as with Helm's --set. Helm reads whole
// numbers in files as floats, which templates then print as 1e+06.
func normalize(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = normalize(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = normalize(value)
		}
		return out
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		float, _ := v.Float64()
		return normalize(float)
	case float64:
		const exact = 1 << 53
		if v == math.Trunc(v) && math.Abs(v) < exact {
			return int64(v)
		}
	case int:
		return int64(v)
	}
	return v
}

// maxIndexes bounds the lists that overrides create by setting a high index.
const maxIndexes = 256 << 10

var listIndex = regexp.MustCompile(`\[\s*([0-9]+)`)

// override applies overrides to values, in the order of their paths.
func override(values map[string]any, overrides map[string]string, r *report) {
	indexes := 0
	for _, path := range slices.Sorted(maps.Keys(overrides)) {
		field := "overrides." + nf.Clip(path, maxQuote)
		line := path + "=" + overrides[path]
		for _, found := range listIndex.FindAllStringSubmatch(line, -1) {
			index, err := strconv.Atoi(found[1])
			if indexes += index; err != nil || index > maxIndexes || indexes > maxIndexes {
				r.add(place{}, field, "brings the lists that overrides make to more than %d elements", maxIndexes)
				return
			}
		}
		err := guarded(func() error { return strvals.ParseInto(line, values) })
		if err == nil {
			continue
		}
		// The parser's message may repeat the value, which may be secret.
		if err := guarded(func() error { return strvals.ParseInto(path+"=x", map[string]any{}) }); err != nil {
			r.add(place{}, field, "is not a valid path of a value: %v", err)
		} else {
			r.add(place{}, field, "cannot be set: Helm's --set cannot parse its value (write a comma inside the value as \\,), or its parent is not a list or map")
		}
	}
}

// enable removes the subcharts that the values disable. It reports missing
// dependencies. It returns whether the values can be merged, and reports it otherwise.
func enable(s source, user map[string]any, r *report) bool {
	if err := guarded(func() error { return chartutil.ProcessDependencies(s.chart, user) }); err != nil {
		reportMistyped(s, user, err, r)
		return false
	}
	checkDependencies(s, s.chart, r)
	return true
}

// resolve determines which subcharts are enabled, and returns the values that
// the chart's templates see. It reports missing dependencies and values that
// cannot be merged. It does not validate values against schemas.
func resolve(s source, user map[string]any, options common.ReleaseOptions, caps *common.Capabilities, r *report) common.Values {
	if !enable(s, user, r) {
		return nil
	}
	var top common.Values
	err := guarded(func() (err error) {
		top, err = util.ToRenderValuesWithSchemaValidation(s.chart, user, options, caps, true)
		return err
	})
	if err != nil {
		reportMistyped(s, user, err, r)
		return nil
	}
	return top
}

// reportMistyped reports why values cannot be merged with those of a chart.
// Helm's own message is omitted, because it repeats the values.
func reportMistyped(s source, user map[string]any, cause error, r *report) {
	before := len(r.found)
	findMistyped(s.chart, user, "parameters", r)
	findMistyped(s.chart, s.chart.Values, s.at(valuesFile).file, r)
	if len(r.found) == before {
		r.add(s.at(valuesFile), "", "cannot be merged with the values of subcharts (%T)", cause)
	}
}

func findMistyped(c *chart.Chart, values map[string]any, field string, r *report) {
	for _, d := range c.Dependencies() {
		value, there := values[d.Name()]
		if !there {
			continue
		}
		table, ok := value.(map[string]any)
		if !ok {
			r.add(place{}, field+"."+d.Name(), "is not an object, but %s is a subchart", d.Name())
			continue
		}
		findMistyped(d, table, field+"."+d.Name(), r)
	}
}

// checkDependencies reports enabled dependencies that are missing. Helm would
// omit them silently.
func checkDependencies(s source, c *chart.Chart, r *report) {
	for _, wanted := range c.Metadata.Dependencies {
		at := slices.IndexFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == wanted.Name })
		if at < 0 {
			r.add(s.at(chartFile), "dependencies", "chart %q needs %q %s, which is not in its charts folder", c.Name(), wanted.Name, wanted.Version)
		}
	}
	for _, d := range c.Dependencies() {
		checkDependencies(s, d, r)
	}
}
