package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// becomeManagement makes a management region of a plain one, with a package of the core of
// Cluster API and three providers, each in a namespace of its own, and returns its instance.
// Before that, the request for an instance with a Cluster is refused.
func (s *testService) becomeManagement(t *testing.T, cluster map[string]any) (providers string) {
	t.Helper()
	modules := clustertest.ClusterModules(t, filepath.Join("..", "..", "..", "tools", "clusterapi"))
	core, capd := modules["sigs.k8s.io/cluster-api"], modules["sigs.k8s.io/cluster-api/test"]
	s.upload("providers", providersPackage(t, map[string]string{
		"core": filepath.Join(core, "core"), "bootstrap": filepath.Join(core, "bootstrap", "kubeadm"),
		"control-plane": filepath.Join(core, "controlplane", "kubeadm"), "infrastructure": filepath.Join(capd, "infrastructure", "docker"),
	}))
	refused := s.want(http.StatusUnprocessableEntity, s.do("POST", "/v1/vnf_instances", cluster))
	for _, kind := range []string{"Cluster", "DevCluster", "KubeadmControlPlane", "MachineDeployment"} {
		if !strings.Contains(string(refused.body), `"kind":"`+kind+`"`) {
			t.Errorf("the refusal does not name the kind %s: %s", kind, refused.body)
		}
	}
	up := s.want(http.StatusAccepted, s.async("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": cluster["cloud_region_id"], "csar_id": "providers", "namespace": "capi-system",
	}))
	if op := s.operation(up.text(t, "operation_id")); op.text(t, "state") != "succeeded" {
		t.Fatalf("the providers do not run: %s", op.body)
	}
	return up.text(t, "vnf_id")
}

// providersPackage is a package of providers, with one file of objects for each, as
// "clusterctl generate provider" prints it: it has the namespace, the prefix and the defaults
// of the provider.
func providersPackage(t *testing.T, folders map[string]string) map[string]string {
	t.Helper()
	files, metadata, namespaces := map[string]string{}, "resources:\n", []string{}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		config := filepath.Join(folders[name], "config")
		var provider struct {
			Namespace  string `json:"namespace"`
			NamePrefix string `json:"namePrefix"`
		}
		text, err := os.ReadFile(filepath.Join(config, "default", "kustomization.yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, &provider)
		}
		if err != nil || provider.Namespace == "" {
			t.Fatalf("%s has no namespace: %v", config, err)
		}
		var all []string
		for _, pattern := range []string{"default/namespace.yaml", "crd/bases/*.yaml", "rbac/*.yaml", "manager/manager.yaml", "webhook/*.yaml"} {
			found, err := filepath.Glob(filepath.Join(config, pattern))
			if err != nil || len(found) == 0 {
				t.Fatalf("%s has no %s: %v", config, pattern, err)
			}
			for _, file := range found {
				if strings.Contains(filepath.Base(file), "kustom") {
					continue
				}
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for doc := range strings.SplitSeq(string(text), "\n---\n") {
					if object := provided(t, doc, provider.Namespace, provider.NamePrefix); object != "" {
						all = append(all, object)
					}
				}
			}
		}
		namespaces = append(namespaces, provider.Namespace)
		files[name+".yaml"] = strings.Join(all, "---\n")
		metadata += fmt.Sprintf("- {name: %s, manifest: %s.yaml}\n", name, name)
	}
	files["metadata.yaml"] = "namespaces: [" + strings.Join(namespaces, ", ") + "]\n" + metadata
	return files
}

var switches = regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`)

// provided returns an object of a provider in its namespace. No controller answers here, so
// that its webhooks must not be required.
func provided(t *testing.T, doc, namespace, prefix string) string {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(switches.ReplaceAllString(doc, "$1")), &object); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	kind, _ := object["kind"].(string)
	meta, _ := object["metadata"].(map[string]any)
	switch kind {
	case "":
		return ""
	case "Namespace":
		meta["name"] = namespace
	case "CustomResourceDefinition":
	case "Role", "RoleBinding", "ServiceAccount", "Service", "Deployment":
		meta["namespace"] = namespace
		fallthrough
	default:
		meta["name"] = prefix + meta["name"].(string)
		placed(object, namespace, prefix)
	}
	out, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// placed replaces references to objects of the provider.
func placed(value any, namespace, prefix string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			placed(item, namespace, prefix)
		}
	case map[string]any:
		name, named := v["name"].(string)
		switch {
		case named && v["namespace"] == "system", named && v["apiGroup"] == "rbac.authorization.k8s.io":
			v["name"] = prefix + name
		}
		for _, field := range []string{"failurePolicy", "serviceAccountName", "namespace"} {
			is, has := v[field].(string)
			switch {
			case !has:
			case field == "failurePolicy":
				v[field], v["timeoutSeconds"] = "Ignore", 1
			case field == "serviceAccountName":
				v[field] = prefix + is
			case is == "system":
				v[field] = namespace
			}
		}
		for _, inner := range v {
			placed(inner, namespace, prefix)
		}
	}
}
