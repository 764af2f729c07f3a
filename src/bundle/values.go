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

// chartHead is what a Chart.yaml says that matters here.
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
		return c, nf.Violations{{File: "Chart.yaml", Line: line, Message: "is not as it should be: " + message}}
	}
	return c, nil
}

// mergeValues puts a profile's values over those of a chart. What it writes is
// JSON, which is YAML: the numbers and texts that Helm reads from it are those
// that it would read from the two files.
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
	return strike(files, chart, over)
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

// mergeMaps puts values over others as Helm does: maps are merged, null takes
// away, everything else replaces.
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

// strike takes away from the subcharts of a chart what values for them say is
// null: Helm does so for values that it is given, and not for those of a chart.
func strike(files render.Files, chart string, over map[string]any) error {
	if !strikes(over) {
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
		if err := strike(files, folder, inner); err != nil {
			return err
		}
	}
	return nil
}

// strikes reports whether a null is somewhere in the values.
func strikes(over map[string]any) bool {
	for _, value := range over {
		inner, isMap := value.(map[string]any)
		if value == nil || isMap && strikes(inner) {
			return true
		}
	}
	return false
}

// removeNulls takes away what is null in over, and reports whether something was
// there.
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
