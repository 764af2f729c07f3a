package csar

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/csar"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// A manifest has these fields at the top of each document, in YAML or in JSON.
var (
	versionField = regexp.MustCompile(`(?m)^[\t {]*["']?apiVersion["']?[\t ]*:`)
	kindField    = regexp.MustCompile(`(?m)["']?kind["']?[\t ]*:`)
	toscaField   = regexp.MustCompile(`(?m)^["']?(?:tosca_definitions_version|heat_template_version)["']?[\t ]*:`)
)

// kubernetes returns the artifacts that are manifests and those that are charts, in the
// order of the list of artifacts. A file that is too large to be read is neither.
func kubernetes(c csar.CSAR, files render.Files) (manifests, charts []string) {
	for _, a := range c.VNFD.Artifacts {
		content := files[a.Path]
		switch strings.ToLower(path.Ext(a.Path)) {
		case ".yaml", ".yml", ".json":
			if versionField.Match(content) && kindField.Match(content) && !toscaField.Match(content) {
				manifests = append(manifests, a.Path)
			}
		case ".tgz":
			if bytes.HasPrefix(content, []byte("\x1f\x8b")) {
				charts = append(charts, a.Path)
			}
		}
	}
	return manifests, charts
}

// manifestPackage returns a package of manifests in one group. The renderer replaces $$
// by $, so that the manifests stay as they are.
func manifestPackage(files render.Files, names ...string) render.Files {
	out := make(render.Files, len(names)+1)
	var list strings.Builder
	list.WriteString("resources:\n- manifest:\n")
	for _, name := range names {
		list.WriteString("  - " + strconv.Quote(name) + "\n")
		if files.PassedBy(name) {
			out[name] = nil
			continue
		}
		out[name] = bytes.ReplaceAll(files[name], []byte("$"), []byte("$$"))
	}
	out["metadata.yaml"] = []byte(list.String())
	return out
}

// maxChart limits what a packaged chart unpacks to.
const maxChart = 16 << 20

// unpack returns the files of a packaged chart.
func unpack(files render.Files, name string) (render.Files, error) {
	limits := render.DefaultLimits()
	limits.Unpacked, limits.File = maxChart, maxChart
	if files.PassedBy(name) {
		return nil, nf.E(nf.TooLarge, "open", "the chart", nf.Violations{{File: name, Message: fmt.Sprintf("has more than %d bytes", maxChart)}})
	}
	chart, _, err := render.Archive(files[name], limits)
	if err != nil {
		return nil, fmt.Errorf("cannot open the chart %s: %w", name, err)
	}
	return chart, nil
}

// move makes objects of another namespace those of the instance's, if it is the only one
// that they name: a CSAR has it for tools that need one.
func move(out render.Output, namespace string) {
	only := ""
	for _, g := range out.Groups {
		for _, o := range g.Objects {
			switch own := o.GetNamespace(); {
			case own == "" || own == only:
			case only == "":
				only = own
			default:
				return
			}
		}
	}
	if only == "" || namespace == "" {
		return
	}
	for _, g := range out.Groups {
		for _, o := range g.Objects {
			if o.GetNamespace() != "" {
				o.SetNamespace(namespace)
			}
		}
	}
}
