package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/render/helm/helmtest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestCharts takes every chart that public charts are like through its life, and
// compares what the API server has with what the chart says: nothing of any
// manifest may be lost.
func TestCharts(t *testing.T) {
	t.Parallel()
	s := startService(t)
	charts := helmtest.Charts()
	if len(charts) < 30 {
		t.Errorf("there are %d charts", len(charts))
	}
	for name, files := range charts {
		if name == "namespace" {
			continue // see TestChartWithANamespace
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := chartLife{testService: s.with(t), id: "chart-" + name, ns: clustertest.Namespace(t)}
			c.put(files)
			c.live()
		})
	}
}

// TestChartWithANamespace refuses a chart that needs a namespace in addition to its own:
// others may live there.
func TestChartWithANamespace(t *testing.T) {
	t.Parallel()
	s := startService(t)
	c := chartLife{testService: s, id: "chart-namespace", ns: clustertest.Namespace(t)}
	c.put(helmtest.Charts()["namespace"])
	before := clustertest.Objects(t, c.ns)
	refused := c.want(http.StatusBadRequest, c.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": c.id, "namespace": c.ns, "vnf_instance_name": "test",
	}))
	if !strings.Contains(string(refused.body), "namespace/templates/namespace.yaml") {
		t.Errorf("it does not say where: %s", refused.body)
	}
	if diff := cmp.Diff(before, clustertest.Objects(t, c.ns)); diff != "" {
		t.Errorf("what it has touched (-before +after)\n%s", diff)
	}
}

// with returns the service for another test.
func (s *testService) with(t *testing.T) *testService {
	other := *s
	other.t = t
	return &other
}

// chartLife is the life of one chart.
type chartLife struct {
	*testService
	id, ns, vnf string
}

var groupOfDefinition = regexp.MustCompile(`(?m)^  group: "?([a-z0-9.-]+)"?\s*$`)

// put uploads the chart. Definitions outlive it, so that its kinds get a group
// that is this test's alone.
func (c *chartLife) put(files render.Files) {
	own := map[string]string{}
	for _, content := range files {
		if bytes.Contains(content, []byte("kind: CustomResourceDefinition")) {
			for _, found := range groupOfDefinition.FindAllSubmatch(content, -1) {
				own[string(found[1])] = c.ns + "." + string(found[1])
			}
		}
	}
	packed := map[string]string{}
	for file, content := range files {
		text := string(content)
		for group, mine := range own {
			text = strings.ReplaceAll(text, group, mine)
		}
		packed[file] = text
	}
	c.want(http.StatusCreated, c.do("PUT", "/v1/packages/"+c.id, rendertest.Zip(packed)))
}

// live brings the chart up, changes it, goes back and removes it.
func (c *chartLife) live() {
	t := c.t
	before := clustertest.Objects(t, c.ns)
	up := c.want(http.StatusCreated, c.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "sandbox", "csar_id": c.id, "namespace": c.ns, "vnf_instance_name": strings.TrimSuffix("test-"+c.id, "-"), "wait": "applied",
	}))
	c.vnf = up.text(t, "vnf_id")
	c.holds("installed", c.ended(up))
	c.holds("upgraded", c.ended(c.want(http.StatusOK, c.do("PATCH", "/v1/vnf_instances/"+c.vnf, map[string]any{"vnf_instance_description": "changed", "wait": "applied"}))))
	last := c.ended(c.want(http.StatusOK, c.do("POST", "/v1/vnf_instances/"+c.vnf+"/rollback", map[string]any{"revision": 1, "wait": "applied"})))
	c.holds("rolled back", last)
	kept := c.keeps()
	c.want(http.StatusNoContent, c.do("DELETE", "/v1/vnf_instances/"+c.vnf, nil))
	after := slices.DeleteFunc(clustertest.Objects(t, c.ns), func(key string) bool {
		return slices.ContainsFunc(kept, func(name string) bool { return strings.HasSuffix(key, "/"+c.ns+"/"+name) }) ||
			key == "namespaces//"+c.ns || strings.HasPrefix(key, "serviceaccounts/"+c.ns+"/default") || strings.HasSuffix(key, "/kube-root-ca.crt")
	})
	if len(kept) == 0 {
		after = clustertest.Objects(t, c.ns)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what is left of it (-before +after)\n%s", diff)
	}
}

// ended returns the operation that a response names, at its end.
func (c *chartLife) ended(a answer) answer {
	c.t.Helper()
	op := c.operation(a.text(c.t, "operation_id"))
	if op.text(c.t, "state") != "succeeded" {
		c.t.Fatalf("the operation is %s", op.body)
	}
	return op
}

// keeps returns the names of the objects that the chart does not want deleted.
func (c *chartLife) keeps() (names []string) {
	plan, err := c.parts.engine.Plan(c.t.Context(), c.vnf)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, stage := range plan.Stages {
		for _, obj := range stage.Objects {
			if obj.Keep {
				names = append(names, obj.Object.GetName())
			}
		}
	}
	return names
}

// holds compares every object that the chart renders to with what is there.
func (c *chartLife) holds(when string, _ answer) {
	c.t.Helper()
	plan, err := c.parts.engine.Plan(c.t.Context(), c.vnf)
	if err != nil {
		c.t.Fatal(err)
	}
	compared := 0
	for _, stage := range plan.Stages {
		for _, obj := range stage.Objects {
			if _, mortal, _ := unstructured.NestedFieldNoCopy(obj.Object.Object, "spec", "ttlSecondsAfterFinished"); mortal {
				continue
			}
			live := clustertest.Get(c.t, obj.Object)
			if live == nil {
				c.t.Errorf("%s: %s %s is not there", when, obj.Object.GetKind(), obj.Object.GetName())
				continue
			}
			for _, lost := range missingFrom(live.Object, obj.Object.Object, "") {
				c.t.Errorf("%s: %s %s: %s", when, obj.Object.GetKind(), obj.Object.GetName(), lost)
			}
			compared++
		}
	}
	if compared == 0 {
		c.t.Errorf("%s: nothing was compared", when)
	}
}

// missingFrom returns where a live object does not say what a manifest does.
func missingFrom(live, wanted any, path string) []string {
	switch wanted := wanted.(type) {
	case map[string]any:
		return missingFields(live, wanted, path)
	case []any:
		has, _ := live.([]any)
		if len(has) != len(wanted) {
			return []string{fmt.Sprintf("%s has %d entries, not %d", path, len(has), len(wanted))}
		}
		var out []string
		for i := range wanted {
			out = append(out, missingFrom(has[i], wanted[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return out
	}
	if !alike(live, wanted) {
		return []string{fmt.Sprintf("%s is %v, not %v", path, live, wanted)}
	}
	return nil
}

func missingFields(live any, wanted map[string]any, path string) []string {
	has, _ := live.(map[string]any)
	var out []string
	for name, value := range wanted {
		if empty(value) && has[name] == nil {
			continue
		}
		if path == "" && name == "stringData" {
			out = append(out, secretData(has, value)...)
			continue
		}
		out = append(out, missingFrom(has[name], value, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return out
}

// secretData compares what a Secret was to hold as text with what it holds.
func secretData(live map[string]any, wanted any) []string {
	texts, _ := wanted.(map[string]any)
	data, _ := live["data"].(map[string]any)
	var out []string
	for name, text := range texts {
		if data[name] != base64.StdEncoding.EncodeToString(fmt.Append(nil, text)) {
			out = append(out, "stringData."+name+" is another")
		}
	}
	return out
}

// empty reports whether a value is one that API servers leave out.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == "" || v == false || v == int64(0)
}

// alike reports whether two values are one to the API server: it writes
// quantities in its own way.
func alike(a, b any) bool {
	if a == b {
		return true
	}
	x, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && x.Cmp(y) == 0
}

func TestMissingFrom(t *testing.T) {
	t.Parallel()
	live := map[string]any{"a": "1", "cpu": "1", "list": []any{map[string]any{"x": int64(1), "more": true}}, "data": map[string]any{"k": "dg=="}}
	cases := map[string]struct {
		reason string
		wanted map[string]any
		want   int
	}{
		"Same":     {"what is there is there", map[string]any{"a": "1"}, 0},
		"Quantity": {"quantities are compared as such", map[string]any{"cpu": "1000m"}, 0},
		"Empty":    {"what says nothing may be left out", map[string]any{"b": map[string]any{}, "c": nil}, 0},
		"Lost":     {"a field that is lost is found", map[string]any{"b": "x"}, 1},
		"Other":    {"so is one that is another", map[string]any{"a": "2"}, 1},
		"Deep":     {"in lists, too", map[string]any{"list": []any{map[string]any{"x": int64(2)}}}, 1},
		"Short":    {"and lists that are shorter", map[string]any{"list": []any{}, "a": "1", "z": []any{"x"}}, 2},
		"Secret":   {"a Secret's text is in its data", map[string]any{"stringData": map[string]any{"k": "v"}}, 0},
		"Another":  {"and is compared", map[string]any{"stringData": map[string]any{"k": "w"}}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := missingFrom(live, tc.wanted, ""); len(got) != tc.want {
				t.Errorf("%s: %q", tc.reason, got)
			}
		})
	}
}
