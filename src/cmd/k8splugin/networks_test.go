package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestAttachedPods attaches a Deployment to two networks with the command line, changes
// its attachments, and terminates it. The template of its pods in the cluster has the
// attachments, after that of the package itself; the networks are gone at the end.
func TestAttachedPods(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	s := startBareService(t)
	ns, dir := clustertest.Namespace(t), t.TempDir()
	for name, text := range map[string]string{
		"kubeconfig":           string(clustertest.Kubeconfig(t)),
		"router/metadata.yaml": "name: router\nresources:\n- deployment: [router.yaml]\n",
		"router/router.yaml":   routerDeployment,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cli := func(args ...string) map[string]any { t.Helper(); return documentOf(t, s.url, args...) }
	attached := func() []string {
		t.Helper()
		of := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": ns, "name": "router"}}}
		text, _, _ := unstructured.NestedString(clustertest.Get(t, of).Object, "spec", "template", "metadata", "annotations", "k8s.v1.cni.cncf.io/networks")
		var all []struct {
			Name, Namespace, Interface string
			IPs                        []string `json:"ips"`
		}
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var out []string
		for _, a := range all {
			out = append(out, a.Namespace+"/"+a.Name)
			if len(a.IPs) > 0 {
				out = append(out, a.IPs...)
			}
		}
		return out
	}
	count := func(id string) any { t.Helper(); return cli("network", "show", id)["use_count"] }

	cli("region", "add", "networks", "--kubeconfig", filepath.Join(dir, "kubeconfig"))
	cli("package", "push", filepath.Join(dir, "router"))
	cli("network", "create", "pods-oam", "--region", "networks", "--spec", "{type: macvlan, master: eth1, ipam: {type: static}}", "--holder", "ann")
	cli("network", "create", "pods-lan", "--region", "networks", "--spec", "{type: bridge, bridge: br0, ipam: {type: whereabouts, range: 10.2.0.0/24}}", "--holder", "ann")
	cli("instance", "create", "fw", "--region", "networks", "--package", "router", "--namespace", ns, "--wait",
		"--attach", "pods-oam,workload=Deployment/router,ip=10.1.0.9/24", "--attach", "pods-lan")
	want := []string{"kube-system/own", "k8splugin-networks/pods-oam", "10.1.0.9/24", "k8splugin-networks/pods-lan"}
	if got := attached(); !slices.Equal(got, want) {
		t.Errorf("the pods are attached to %v, want %v", got, want)
	}
	if oam, lan := count("networks.pods-oam"), count("networks.pods-lan"); oam != 2.0 || lan != 2.0 {
		t.Errorf("after the creation, the networks have %v and %v holders", oam, lan)
	}
	clustertest.Attach(t, ns, `[{"name":"cbr0","interface":"eth0","ips":["10.244.0.5"],"default":true},`+
		`{"name":"k8splugin-networks/pods-oam","interface":"net1","ips":["10.1.0.9"],"mac":"02:00:00:00:00:09"}]`)
	pods, _ := cli("instance", "tree", "fw")["pods"].([]any)
	if len(pods) != 1 {
		t.Fatalf("the instance has the pods %v", pods)
	}
	wanted := map[string]any{"workload": map[string]any{"api_version": "apps/v1", "kind": "Deployment", "namespace": ns, "name": "router"}, "status": "Current",
		"interfaces": []any{
			map[string]any{"name": "eth0", "network": "cbr0", "ips": []any{"10.244.0.5"}},
			map[string]any{"name": "net1", "network": "pods-oam", "ips": []any{"10.1.0.9"}, "mac": "02:00:00:00:00:09"},
		}}
	for field, want := range wanted {
		if diff := cmp.Diff(want, pods[0].(map[string]any)[field]); diff != "" {
			t.Errorf("%s of the pod (-want +got):\n%s", field, diff)
		}
	}
	cli("instance", "update", "fw", "--attach", "pods-lan", "--wait")
	want = []string{"kube-system/own", "k8splugin-networks/pods-lan"}
	if got := attached(); !slices.Equal(got, want) {
		t.Errorf("after the update, the pods are attached to %v, want %v", got, want)
	}
	if oam, lan := count("networks.pods-oam"), count("networks.pods-lan"); oam != 1.0 || lan != 2.0 {
		t.Errorf("after the update, the networks have %v and %v holders", oam, lan)
	}
	cli("network", "delete", "networks.pods-oam", "--holder", "ann")
	cli("network", "delete", "networks.pods-lan", "--holder", "ann")
	cli("instance", "delete", "fw", "--wait")
	for left := []any{nil}; len(left) > 0; {
		left, _ = cli("network", "list")["networks"].([]any) // their own operations delete them
	}
}

const routerDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: router}
spec:
  selector: {matchLabels: {app: router}}
  template:
    metadata:
      labels: {app: router}
      annotations: {k8s.v1.cni.cncf.io/networks: kube-system/own}
    spec:
      containers:
      - {name: router, image: registry.example.com/router:1}
`
