package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// labFolder is a folder with declarations for a service, in its folder lab.
type labFolder struct {
	t   *testing.T
	s   *testService
	dir string
}

func (l labFolder) write(files map[string]string) {
	l.t.Helper()
	for name, text := range files {
		path := filepath.Join(l.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			l.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
}

// apply applies the declarations, and compares what was done with each object.
func (l labFolder) apply(reason string, want map[string]string, args ...string) {
	l.t.Helper()
	var out, said bytes.Buffer
	args = append([]string{"apply", "-f", filepath.Join(l.dir, "lab"), "--server", l.s.url, "--wait", "-o", "json"}, args...)
	if code := run(l.t.Context(), args, testProcess(&out, &said)); code != 0 {
		l.t.Fatalf("%s: exit code %d\n%s%s", reason, code, &out, &said)
	}
	var results struct {
		Results []struct {
			Kind, Name, Action string
			Region             string `json:"cloud_region_id"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &results); err != nil {
		l.t.Fatal(err)
	}
	got := map[string]string{}
	for _, one := range results.Results {
		got[one.Kind+"/"+one.Name] = strings.TrimSpace(one.Action + " " + one.Region)
	}
	if !maps.Equal(got, want) {
		l.t.Errorf("%s: got %v, want %v\n%s", reason, got, want, &said)
	}
}

// TestApplyDeclarations applies files to a service with no region, changes them, has
// another client change an object, and removes an instance from the files.
func TestApplyDeclarations(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	ns := clustertest.Namespace(t)
	lab := labFolder{t, s, t.TempDir()}
	files := map[string]string{
		"kubeconfig":             string(clustertest.Kubeconfig(t)),
		"settings/metadata.yaml": "name: settings\nvariables:\n- {name: level, type: integer, default: 1}\nresources:\n- configmap: [settings.yaml]\n",
		"settings/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"$vnf_name\"}\ndata: {level: \"$level\"}\n",
		"lab/region.yaml":        "kind: region\ncloud_region_id: sandbox\nkubeconfig_file: ../kubeconfig\n",
		"lab/package.yaml":       "kind: package\ncsar_id: settings\npath: ../settings\n",
		"lab/one.yaml":           "kind: instance\nvnf_instance_name: one\ncloud_region_id: sandbox\nnamespace: " + ns + "\ncsar_id: settings\nlabels: {lab: a}\n",
		"lab/two.yaml":           "kind: instance\nvnf_instance_name: two\ncloud_region_id: sandbox\nnamespace: " + ns + "\ncsar_id: settings\nlabels: {lab: a}\nparameters: {level: 2}\n",
	}
	lab.write(files)
	apply := lab.apply
	level := func(name string) string {
		t.Helper()
		of := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": ns, "name": name}}}
		data, _, _ := unstructured.NestedString(clustertest.Get(t, of).Object, "data", "level")
		return data
	}
	const created, configured, unchanged, deleted = "created", "configured", "unchanged", "deleted"
	all := func(region, pkg, one, two string) map[string]string {
		return map[string]string{"region/sandbox": region, "package/settings": pkg, "instance/one": one, "instance/two": two}
	}

	apply("a new lab", all(created, created, created, created))
	if level("one") != "1" || level("two") != "2" {
		t.Errorf("the levels are %s and %s", level("one"), level("two"))
	}
	apply("the same again", all(unchanged, unchanged, unchanged, unchanged))

	lab.write(map[string]string{"lab/two.yaml": strings.Replace(files["lab/two.yaml"], "parameters: {level: 2}\n", "", 1)})
	apply("a parameter is not declared any more", all(unchanged, unchanged, unchanged, configured))
	if level("two") != "1" {
		t.Errorf("the level of two is %s", level("two"))
	}

	kubectl(t, http.MethodPatch, "/api/v1/namespaces/"+ns+"/configmaps/one", `{"data":{"level":"9"}}`)
	apply("another client has changed an object", all(unchanged, unchanged, configured, unchanged))
	if level("one") != "1" {
		t.Errorf("the level of one is %s", level("one"))
	}

	lab.write(map[string]string{"settings/settings.yaml": files["settings/settings.yaml"] + "immutable: false\n"})
	apply("the package has another content", all(unchanged, configured, configured, configured))

	if err := os.Remove(filepath.Join(lab.dir, "lab/two.yaml")); err != nil {
		t.Fatal(err)
	}
	apply("an instance is not declared any more", all(unchanged, unchanged, unchanged, deleted), "--prune", "-l", "lab=a", "--yes")
	left, ok := s.do("GET", "/v1/vnf_instances", nil).field(t, "vnf_instances").([]any)
	if !ok || len(left) != 1 {
		t.Errorf("the instances are %v", left)
	}
}

// TestApplyPlacement declares instances without regions. The service chooses the region of
// each when it creates it, and the same files leave it there.
func TestApplyPlacement(t *testing.T) {
	t.Parallel()
	s := startBareService(t)
	ns := clustertest.Namespace(t)
	lab := labFolder{t, s, t.TempDir()}
	region := func(id, site string) string {
		return "kind: region\ncloud_region_id: " + id + "\nkubeconfig_file: ../kubeconfig\nlabels: {site: " + site + "}\n"
	}
	placed := func(name, level string) string {
		return "kind: instance\nvnf_instance_name: " + name + "\nnamespace: " + ns + "\ncsar_id: settings\nlabels: {lab: a}\nparameters: {level: " + level + "}\nplacement: {selector: site=edge}\n"
	}
	lab.write(map[string]string{
		"kubeconfig":             string(clustertest.Kubeconfig(t)),
		"settings/metadata.yaml": "name: settings\nvariables:\n- {name: level, type: string}\nresources:\n- configmap: [settings.yaml]\n",
		"settings/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"$vnf_name\"}\ndata: {level: \"$level\"}\n",
		"lab/regions.yaml":       region("a", "core") + "---\n" + region("b", "edge") + "---\n" + region("c", "edge"),
		"lab/package.yaml":       "kind: package\ncsar_id: settings\npath: ../settings\n",
		"lab/one.yaml":           placed("one", "low"),
		"lab/two.yaml":           placed("two", "low"),
	})
	const created, configured, unchanged, deleted = "created", "configured", "unchanged", "deleted"
	all := func(others, one, two string) map[string]string {
		return map[string]string{"region/a": others, "region/b": others, "region/c": others, "package/settings": others, "instance/one": one, "instance/two": two}
	}
	lab.apply("each goes to the region with the fewest instances", all(created, created+" b", created+" c"))
	lab.apply("the same again, although the regions are equal now", all(unchanged, unchanged+" b", unchanged+" c"))

	lab.write(map[string]string{"lab/one.yaml": placed("one", "high")})
	lab.apply("a change is made where the instance is", all(unchanged, configured+" b", unchanged+" c"), "--prune", "-l", "lab=a", "--yes")

	lab.write(map[string]string{"lab/regions.yaml": region("a", "edge") + "---\n" + region("b", "core") + "---\n" + region("c", "core")})
	want := all(configured, unchanged+" b", unchanged+" c")
	want["package/settings"] = unchanged
	lab.apply("an instance stays in a region that no longer fits", want, "--prune", "-l", "lab=a", "--yes")

	if err := os.Remove(filepath.Join(lab.dir, "lab/two.yaml")); err != nil {
		t.Fatal(err)
	}
	lab.apply("an instance is not declared any more", all(unchanged, unchanged+" b", deleted), "--prune", "-l", "lab=a", "--yes")
	left, ok := s.do("GET", "/v1/vnf_instances", nil).field(t, "vnf_instances").([]any)
	if !ok || len(left) != 1 {
		t.Errorf("the instances are %v", left)
	}
}
