package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

const valuesFile = "values.yaml"

// chartHead holds the fields of a Chart.yaml that are used here.
type chartHead struct {
	Name         string `json:"name"`
	Dependencies []struct {
		Name  string `json:"name"`
		Alias string `json:"alias"`
	} `json:"dependencies"`
}

func parseChart(text []byte) (chartHead, error) {
	var c chartHead
	if len(text) > maxDocument {
		return c, tooLong("Chart.yaml")
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		line, message := syntax.YAML(err)
		return c, nf.Violations{{File: "Chart.yaml", Line: line, Message: "is not valid: " + message}}
	}
	return c, nil
}

// mergeValues merges a profile's values over a chart's. It writes JSON, which
// is valid YAML: Helm reads the same numbers and strings from it as from the
// two files.
func mergeValues(o overlay, files render.Files, chart string) error {
	over, err := readValues(o.valueName, o.values)
	if err != nil {
		return err
	}
	file := chart + "/" + valuesFile
	if len(over) == 0 && files[file] != nil {
		return nil
	}
	base, err := readValues(valuesFile, files[file])
	if err != nil {
		return err
	}
	mergeMaps(base, over)
	if err := writeValues(files, file, base); err != nil {
		return err
	}
	return dropNulls(files, chart, over)
}

func readValues(name string, text []byte) (map[string]any, error) {
	if len(text) > maxDocument {
		return nil, tooLong(name)
	}
	values := map[string]any{}
	exact := func(d *json.Decoder) *json.Decoder {
		d.UseNumber()
		return d
	}
	if err := yaml.Unmarshal(text, &values, exact); err != nil {
		line, message := syntax.YAML(err)
		return nil, nf.Violations{{File: name, Line: line, Message: "is not a file of values: " + message}}
	}
	if values == nil { // the file says null
		values = map[string]any{}
	}
	return values, nil
}

func writeValues(files render.Files, name string, values map[string]any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(values); err != nil {
		return fmt.Errorf("cannot write the values: %w", err)
	}
	files[name] = out.Bytes()
	return nil
}

// mergeMaps merges values over others as Helm does: maps are merged, null
// deletes, and everything else replaces.
func mergeMaps(base, over map[string]any) {
	for name, value := range over {
		inner, isMap := value.(map[string]any)
		below, wasMap := base[name].(map[string]any)
		switch {
		case value == nil:
			delete(base, name)
		case isMap:
			if !wasMap {
				below = map[string]any{}
				base[name] = below
			}
			mergeMaps(below, inner)
		default:
			base[name] = value
		}
	}
}

// dropNulls removes from a chart's subcharts the values that are null in over.
// Helm does so only for user-supplied values, not for those of a chart.
func dropNulls(files render.Files, chart string, over map[string]any) error {
	if !hasNulls(over) {
		return nil
	}
	folders, err := subcharts(files, chart, over)
	if err != nil {
		return err
	}
	for name, folder := range folders {
		inner, _ := over[name].(map[string]any)
		file := folder + "/" + valuesFile
		own, err := readValues(file, files[file])
		if err != nil {
			return err
		}
		if removeNulls(own, inner) {
			if err := writeValues(files, file, own); err != nil {
				return err
			}
		}
		if err := dropNulls(files, folder, inner); err != nil {
			return err
		}
	}
	return nil
}

// hasNulls reports whether the values contain a null at any depth.
func hasNulls(over map[string]any) bool {
	for _, value := range over {
		inner, isMap := value.(map[string]any)
		if value == nil || isMap && hasNulls(inner) {
			return true
		}
	}
	return false
}

// removeNulls deletes from base the values that are null in over, and reports
// whether it deleted any.
func removeNulls(base, over map[string]any) bool {
	removed := false
	for name, value := range over {
		there, ok := base[name]
		if value == nil && ok {
			delete(base, name)
			removed = true
		}
		inner, isMap := value.(map[string]any)
		if below, wasMap := there.(map[string]any); isMap && wasMap {
			removed = removeNulls(below, inner) || removed
		}
	}
	return removed
}
