package bundle

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/render"
)

// packed matches the file name of a packed subchart.
var packed = regexp.MustCompile(`^(.+)-v?[0-9]+\.[^/]*\.tgz$`)

// subcharts returns the folders of the subcharts whose values contain nulls, by
// their names in the values. It unpacks packed subcharts. A subchart used under
// two names is left out, because removing a value would affect both.
func subcharts(files render.Files, chart string, over map[string]any) (map[string]string, error) {
	head, err := parseChart(files[chart+"/Chart.yaml"])
	if err != nil {
		return nil, err
	}
	there := subchartPaths(files, chart)
	called := map[string][]string{} // name of the subchart → its names in the values
	for _, d := range head.Dependencies {
		called[d.Name] = append(called[d.Name], cmp.Or(d.Alias, d.Name))
	}
	folders := map[string]string{}
	for name, place := range there {
		names := called[name]
		if names == nil {
			names = []string{name}
		}
		inner, _ := over[names[0]].(map[string]any)
		if len(names) > 1 || !hasNulls(inner) {
			continue
		}
		if strings.HasSuffix(place, ".tgz") {
			if place, err = unpack(files, place, chart+"/charts/"+name); err != nil {
				return nil, err
			}
		}
		folders[names[0]] = place
	}
	return folders, nil
}

// subchartPaths returns the paths of a chart's subcharts, by name.
func subchartPaths(files render.Files, chart string) map[string]string {
	there := map[string]string{}
	for name := range files {
		rest, ok := strings.CutPrefix(name, chart+"/charts/")
		if !ok {
			continue
		}
		if folder, _, nested := strings.Cut(rest, "/"); nested {
			there[folder] = chart + "/charts/" + folder
		} else if m := packed.FindStringSubmatch(rest); m != nil && there[m[1]] == "" {
			there[m[1]] = name
		}
	}
	return there
}

// unpack replaces a subchart's archive with its files, and returns their
// folder.
func unpack(files render.Files, archive, folder string) (string, error) {
	inner, _, err := render.Archive(files[archive], render.DefaultLimits())
	if err != nil {
		return "", fmt.Errorf("cannot open the subchart %s: %w", path.Base(archive), err)
	}
	_, bare := inner["Chart.yaml"]
	for name, content := range inner {
		if _, rest, nested := strings.Cut(name, "/"); nested && !bare {
			name = rest
		}
		files[folder+"/"+name] = content
	}
	delete(files, archive)
	return folder, nil
}
