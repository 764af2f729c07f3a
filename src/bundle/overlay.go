package bundle

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

const (
	manifestFile = "manifest.yaml"

	// maxDocument limits the size of a YAML file that is parsed here. Parsed,
	// it takes many times its size.
	maxDocument = 4 << 20
)

// manifest is the manifest of a profile's archive.
type manifest struct {
	Type struct {
		Values    string `json:"values"`
		Resources []struct {
			File  string `json:"filepath"`
			Chart string `json:"chartpath"`
		} `json:"configresource"`
	} `json:"type"`
}

// overlay is the set of changes that a profile makes to a chart. The zero value
// changes nothing.
type overlay struct {
	values    []byte      // a Helm values file; nil: none
	valueName string      // its name in the archive
	files     []placement // in the order of the manifest
}

// placement is one file and its destination.
type placement struct {
	from    string // in the archive
	to      string // in the chart; the path begins with the chart's folder
	content []byte
}

// readOverlay reads a profile's archive. It returns nf.Violations for errors in
// the manifest or the values file, and nf.TooLarge if either is too large.
func readOverlay(files render.Files) (overlay, error) {
	folder, text := "", files[manifestFile]
	if text == nil {
		if folder, text = only(files); files.PassedBy(path.Join(folder, manifestFile)) {
			return overlay{}, tooLong(manifestFile)
		}
		if text == nil {
			return overlay{}, nf.Violations{{File: manifestFile, Message: "is missing"}}
		}
	}
	m, err := parseManifest(text)
	if err != nil {
		return overlay{}, err
	}
	var o overlay
	var v nf.Violations
	take := func(field, name string) []byte {
		inner, fault := contained(name)
		if fault != "" {
			v = append(v, nf.Violation{File: manifestFile, Field: field, Message: fmt.Sprintf("%q %s", name, fault)})
			return nil
		}
		content, ok := files[path.Join(folder, inner)]
		if !ok {
			v = append(v, nf.Violation{File: manifestFile, Field: field, Message: fmt.Sprintf("%q is not in the archive", name)})
		} else if content == nil {
			v = append(v, nf.Violation{File: manifestFile, Field: field, Message: fmt.Sprintf("%q is too large", name)})
		}
		return content
	}
	if m.Type.Values != "" {
		o.values, o.valueName = take("type.values", m.Type.Values), m.Type.Values
	}
	for i, r := range m.Type.Resources {
		field := fmt.Sprintf("type.configresource[%d].", i)
		p := placement{from: r.File, content: take(field+"filepath", r.File)}
		var fault string
		if p.to, fault = contained(r.Chart); fault == "" && !strings.Contains(p.to, "/") {
			fault = "does not lie in the chart's folder"
		}
		if fault != "" {
			v = append(v, nf.Violation{File: manifestFile, Field: field + "chartpath", Message: fmt.Sprintf("%q %s", r.Chart, fault)})
		}
		o.files = append(o.files, p)
	}
	if len(v) > 0 {
		return overlay{}, v
	}
	if o.values != nil {
		_, err = readValues(o.valueName, o.values)
	}
	return o, err
}

// only returns the manifest of an archive whose files are all in one top-level
// folder.
func only(files render.Files) (folder string, text []byte) {
	for name := range files {
		top, _, nested := strings.Cut(name, "/")
		if !nested || folder != "" && top != folder {
			return "", nil
		}
		folder = top
	}
	return folder, files[folder+"/"+manifestFile]
}

func parseManifest(text []byte) (manifest, error) {
	var m manifest
	if len(text) > maxDocument {
		return m, tooLong(manifestFile)
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		line, message := syntax.YAML(err)
		return manifest{}, nf.Violations{{File: manifestFile, Line: line, Message: "is not a profile's manifest: " + message}}
	}
	return m, nil
}

// contained returns the clean form of a relative path without parent folders,
// or the fault of any other path.
func contained(name string) (clean, fault string) {
	switch {
	case name == "":
		return "", "names no file"
	case strings.HasPrefix(name, "/"), strings.Contains(name, `\`):
		return "", "is not a relative path"
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", "leads through a parent folder"
	}
	clean = path.Clean(name)
	if clean == "." {
		return "", "names no file"
	}
	return clean, ""
}

// lay applies the overlay to the files of a chart. A file whose folder the
// chart does not have is an error. If strange is set, files for other charts
// are skipped.
func (o overlay) lay(files render.Files, chart string, strange bool) error {
	folders := map[string]bool{}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	var v nf.Violations
	for _, p := range o.files {
		switch {
		case !strings.HasPrefix(p.to, chart+"/") && strange:
		case !folders[path.Dir(p.to)]:
			v = append(v, nf.Violation{File: manifestFile, Field: "type.configresource",
				Message: fmt.Sprintf("%q goes to %q, and the chart has no folder %q", p.from, p.to, path.Dir(p.to))})
		default:
			files[p.to] = p.content
		}
	}
	if len(v) > 0 {
		return nf.E(nf.Invalid, "lay", "the profile over the chart", v)
	}
	if o.values == nil {
		return nil
	}
	if err := mergeValues(o, files, chart); err != nil {
		return nf.E(nf.KindOf(err), "lay", "the profile's values over the chart's", err)
	}
	return nil
}

func tooLong(file string) error {
	return nf.E(nf.TooLarge, "read", file, fmt.Errorf("it is larger than %d bytes", maxDocument))
}

// bareChart returns the name of a chart whose archive has no top-level folder.
func bareChart(text []byte, named string) (string, error) {
	c, err := parseChart(text)
	if err != nil {
		return "", noChart(err)
	}
	name := cmp.Or(named, c.Name)
	if fault := checkName("name", name); fault != nil || strings.Contains(name, "/") || name == "." || name == ".." {
		return "", noChart(fmt.Errorf("%q cannot be the name of a chart's folder", name))
	}
	return name, nil
}
