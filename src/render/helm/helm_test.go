package helm

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// Read by rendertest.Run.
var _ = flag.Bool("update", false, "rewrite the examples")

func TestCharts(t *testing.T) { rendertest.Run(t, example{}, "helmtest/charts") }

func TestExamples(t *testing.T) { rendertest.Run(t, example{}, "testdata") }

// example renders an example with what its case.json says, and shows in the
// names of groups and files what rendertest has no place for.
type example struct{ Renderer }

// caseFile is what a chart alone is rendered with.
const caseFile = "case.json"

type settings struct {
	Overrides   map[string]string `json:"overrides"`
	KubeVersion string            `json:"kube_version"`
	Release     render.Release    `json:"release"`
	Region      *region           `json:"region"`
}

func (e example) Check(ctx context.Context, files render.Files) (render.Summary, error) {
	files = maps.Clone(files)
	delete(files, caseFile)
	return e.Renderer.Check(ctx, files)
}

func (e example) Render(ctx context.Context, in render.Input) (render.Output, error) {
	s := settings{Release: render.Release{Name: "rel", Namespace: "ns", Revision: 1}}
	if content, ok := in.Files[caseFile]; ok {
		if err := json.Unmarshal(content, &s); err != nil {
			return render.Output{}, err
		}
	}
	in.Files = maps.Clone(in.Files)
	delete(in.Files, caseFile)
	in.Inputs.Overrides, in.Inputs.KubeVersion, in.Release = s.Overrides, s.KubeVersion, s.Release
	if s.Region != nil {
		in.Region = s.Region
	}
	out, err := e.Renderer.Render(ctx, in)
	for i, g := range out.Groups {
		if g.Prelude {
			out.Groups[i].Name += " (prelude)"
		}
		for j, o := range g.Objects {
			g.Objects[j] = marked(o)
		}
	}
	for i, h := range out.Hooks {
		out.Groups = append(out.Groups, render.Group{
			Name:    fmt.Sprintf("hook %d: %s weight %d discard %s", i, h.Events, h.Weight, h.Discard),
			Objects: []render.Object{marked(h.Object)}, Timeout: h.Timeout,
		})
	}
	return out, err
}

func marked(o render.Object) render.Object {
	if o.Shared {
		o.File += " (shared)"
	}
	if o.Keep {
		o.File += " (kept)"
	}
	return o
}

// region is a region of a few objects.
type region struct {
	Version string           `json:"version"`
	APIs    []string         `json:"apis"`
	Objects []map[string]any `json:"objects"`

	err error
}

func (r *region) Capabilities(context.Context) (nf.Capabilities, error) {
	return nf.Capabilities{Version: r.Version, APIs: r.APIs}, nil
}

func (r *region) Lookup(_ context.Context, ref nf.Ref) (map[string]any, error) {
	if r.err != nil {
		return nil, r.err
	}
	var items []any
	for _, o := range r.Objects {
		meta, _ := o["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		apiVersion := strings.TrimPrefix(ref.Group+"/"+ref.Version, "/")
		if o["apiVersion"] != apiVersion || o["kind"] != ref.Kind || ref.Namespace != "" && namespace != ref.Namespace {
			continue
		}
		if ref.Name == meta["name"] {
			return o, nil
		}
		items = append(items, o)
	}
	if ref.Name != "" || items == nil {
		return nil, nil
	}
	return map[string]any{"items": items}, nil
}
