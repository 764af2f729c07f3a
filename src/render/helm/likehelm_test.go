package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/helm/helmtest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// made is what is made of a chart.
type made struct {
	printed map[string]string // by template
	objects []string          // as JSON, in order
	hooks   []string          // with when they run
	crds    []string
	lists   bool // some objects are in lists
}

// firstRelease is the release that charts see.
var firstRelease = common.ReleaseOptions{Name: "rel", Namespace: "ns", Revision: 1, IsInstall: true}

// testCapabilities are those of the cluster that charts are rendered for.
func testCapabilities() *common.Capabilities {
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion = common.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	return caps
}

// byHelm makes of a packaged chart what Helm makes of it when it installs it.
func byHelm(archive []byte, values map[string]any) (out made, err error) {
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return out, err
	}
	for _, wanted := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == wanted.Name }) {
			return out, errors.New("found in Chart.yaml, but missing in charts/ directory: " + wanted.Name)
		}
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return out, err
	}
	caps := testCapabilities()
	top, err := util.ToRenderValuesWithSchemaValidation(c, values, firstRelease, caps, false)
	if err != nil {
		return out, err
	}
	if v := c.Metadata.KubeVersion; v != "" && !chartutil.IsCompatibleRange(v, caps.KubeVersion.String()) {
		return out, errors.New("incompatible with Kubernetes")
	}
	if out.printed, err = engine.Render(c, top); err != nil {
		return out, err
	}
	for _, crd := range c.CRDObjects() {
		objects, err := out.read(crd.File.Data)
		if err != nil {
			return out, err
		}
		out.crds = append(out.crds, objects...)
	}
	return out, out.sort()
}

// sort makes objects and hooks of what is printed.
func (m *made) sort() error {
	files := maps.Clone(m.printed)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "NOTES.txt") })
	if err := m.oldDefinitions(files); err != nil {
		return err
	}
	m.crds = skipExisting(m.crds)
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	var stream bytes.Buffer
	for _, manifest := range manifests {
		fmt.Fprintf(&stream, "---\n# Source: %s\n%s\n", manifest.Name, manifest.Content)
	}
	if m.objects, err = m.read(stream.Bytes()); err != nil {
		return err
	}
	for _, h := range hooks {
		objects, err := m.read([]byte(h.Manifest))
		if err != nil {
			return err
		}
		var events, discards []string
		for _, e := range h.Events {
			events = append(events, e.String())
		}
		for _, p := range h.DeletePolicies {
			discards = append(discards, p.String())
		}
		for _, object := range objects {
			m.hooks = append(m.hooks, hookText(events, h.Weight, discards, object))
		}
	}
	return nil
}

// skipExisting leaves out the definitions that exist already when Helm comes to
// them.
func skipExisting(definitions []string) []string {
	exists := map[identity]bool{}
	return slices.DeleteFunc(definitions, func(text string) bool {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
			panic(err) // it was written as JSON
		}
		key := identityOf(render.Object{Unstructured: o})
		again := exists[key]
		exists[key] = true
		return again
	})
}

// oldDefinitions takes out the documents that Helm 2 made before others. Helm has
// left them out silently since; we take them for definitions.
func (m *made) oldDefinitions(files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		documents := releaseutil.SplitManifests(files[name])
		keys := slices.Collect(maps.Keys(documents))
		sort.Sort(releaseutil.BySplitManifestsOrder(keys))
		for _, key := range keys {
			if strings.Contains(documents[key], oldCRD) {
				objects, err := m.read([]byte(documents[key]))
				if err != nil {
					return err
				}
				m.crds = append(m.crds, objects...)
			}
		}
	}
	return nil
}

// hookText says what a hook is, without what has no effect.
func hookText(events []string, weight int, discards []string, object string) string {
	events, discards = slices.Sorted(slices.Values(events)), slices.Sorted(slices.Values(discards))
	discards = slices.DeleteFunc(discards, func(d string) bool { return !slices.Contains(discardNames(), d) })
	return fmt.Sprintf("%s %d %s %s", slices.Compact(events), weight, slices.Compact(discards), object)
}

func discardNames() []string {
	return []string{string(render.DiscardBefore), string(render.DiscardSuccess), string(render.DiscardFailure)}
}

// read reads objects as Helm's client does, which is kubectl's.
func (m *made) read(stream []byte) ([]string, error) {
	var objects []string
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if text := bytes.TrimSpace(raw.Raw); len(text) == 0 || string(text) == "null" {
			continue
		}
		object, _, err := unstructured.UnstructuredJSONScheme.Decode(raw.Raw, nil, nil)
		if err != nil {
			return nil, err
		}
		more, err := m.flatten(object)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
}

func (m *made) flatten(object runtime.Object) ([]string, error) {
	var found []string
	switch o := object.(type) {
	case *unstructured.UnstructuredList:
		m.lists = true
		for i := range o.Items {
			more, err := m.flatten(&o.Items[i])
			if err != nil {
				return nil, err
			}
			found = append(found, more...)
		}
	case *unstructured.Unstructured:
		if o.IsList() {
			list, err := o.ToList()
			if err != nil {
				return nil, err
			}
			return m.flatten(list)
		}
		text, err := json.Marshal(o.Object)
		return []string{string(text)}, err
	}
	return found, nil
}

// byUs makes of it what we make of it.
func byUs(ctx context.Context, archive []byte, values map[string]any) (out made, err error) {
	files, _, err := render.Archive(archive, render.DefaultLimits())
	if err != nil {
		return out, err
	}
	if _, err := (Renderer{}).Check(ctx, files); err != nil {
		return out, err
	}
	in := input(files)
	in.Inputs.Parameters = values
	r := &report{}
	s, ok := load(files, r)
	if !ok {
		return out, r.err("render")
	}
	l := unasked(ctx)
	if out.printed, err = rendered(s, in, testCapabilities(), l, r); err != nil {
		return out, err
	}
	p := sorted(l.meter, s.chart, out.printed, r)
	if err := r.err("render"); err != nil {
		return out, err
	}
	text := func(o render.Object) string {
		content, err := json.Marshal(o.Object)
		if err != nil {
			panic(err) // it was read from JSON
		}
		return string(content)
	}
	for _, o := range p.definitions {
		out.crds = append(out.crds, text(o))
	}
	for _, o := range p.objects {
		out.objects = append(out.objects, text(o))
	}
	for _, h := range p.hooks {
		var events, discards []string
		for _, e := range h.Events {
			events = append(events, string(e))
		}
		for _, d := range h.Discard {
			discards = append(discards, string(d))
		}
		out.hooks = append(out.hooks, hookText(events, h.Weight, discards, text(h.Object)))
	}
	return out, nil
}

// differences compares our output with Helm's. Where Helm itself makes something else
// each time, nothing is compared; there is no second output if again is nil.
func differences(want made, again *made, got made) string {
	if again == nil {
		again = &want
	}
	var b strings.Builder
	tell := func(what, diff string) {
		if diff != "" {
			fmt.Fprintf(&b, "%s (-Helm +ours)\n%s\n", what, diff)
		}
	}
	tell("templates", cmp.Diff(slices.Sorted(maps.Keys(want.printed)), slices.Sorted(maps.Keys(got.printed))))
	for name := range want.printed {
		lines := func(m *made) []string { return strings.SplitAfter(m.printed[name], "\n") }
		tell(name, diffSame(lines(&want), lines(again), lines(&got)))
	}
	if want.lists {
		for _, m := range []*made{&want, again, &got} {
			slices.Sort(m.objects)
			slices.Sort(m.hooks)
		}
	}
	tell("definitions", diffSame(want.crds, again.crds, got.crds))
	tell("objects", diffSame(want.objects, again.objects, got.objects))
	tell("hooks", diffSame(want.hooks, again.hooks, got.hooks))
	return b.String()
}

// diffSame compares the texts that are the same in both of Helm's outputs.
func diffSame(want, again, got []string) string {
	if len(want) == len(again) && len(want) == len(got) {
		got = slices.Clone(got)
		for i := range want {
			if want[i] != again[i] {
				got[i] = want[i]
			}
		}
	}
	return cmp.Diff(want, got)
}

// packaged returns a chart as helm package makes it.
func packaged(files render.Files) []byte {
	folder := ""
	if _, atTop := files[chartFile]; atTop {
		folder = "chart/"
	}
	contents := map[string]string{}
	for name, content := range files {
		contents[folder+name] = string(content)
	}
	return rendertest.TarGz(contents)
}

// TestLikeHelm compares what we make of all charts with what Helm makes of them.
func TestLikeHelm(t *testing.T) {
	for name, files := range helmtest.Charts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := packaged(files)
			want, err := byHelm(archive, map[string]any{})
			if err != nil {
				t.Fatal(err)
			}
			again, err := byHelm(archive, map[string]any{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := byUs(t.Context(), archive, map[string]any{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := differences(want, &again, got); diff != "" || len(want.objects)+len(want.hooks) == 0 {
				t.Errorf("of %d objects: %s", len(want.objects), diff)
			}
		})
	}
}
