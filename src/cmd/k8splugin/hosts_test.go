//go:build hosts

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestHostsCarryPackets creates two networks with the API, and one VNF of two pods on
// two real nodes that both networks connect. The pods reach each other on both, and only
// there; the instance shows their addresses. The networks are counted, and are gone when
// their last holder releases them.
func TestHostsCarryPackets(t *testing.T) {
	clustertest.Networks(t)
	s := startBareService(t)
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "site", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	s.upload("pair", map[string]string{"metadata.yaml": "name: pair\nresources:\n- deployment: [left.yaml, right.yaml]\n", "left.yaml": standin("left"), "right.yaml": standin("right")})
	for network, master := range map[string]string{"oam": "eth0", "lan": "eth1"} {
		s.want(http.StatusCreated, s.do("POST", "/v1/networks", map[string]any{
			"name": network, "cloud_region_id": "site", "driver": "multus", "holder": "operator",
			"spec": map[string]any{"type": "macvlan", "master": master, "ipam": map[string]any{"type": "static"}},
		}))
	}
	counted(s, 1, "oam", "lan")
	ns := clustertest.Namespace(t)
	attach := func(network, workload, ip string) map[string]any {
		return map[string]any{"network": network, "workload": "Deployment/" + workload, "interface": network, "ips": []string{ip + "/24"}}
	}
	created := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "site", "csar_id": "pair", "namespace": ns,
		"networks": []any{attach("oam", "left", "10.1.0.1"), attach("lan", "left", "10.2.0.1"), attach("oam", "right", "10.1.0.2"), attach("lan", "right", "10.2.0.2")},
	}))
	id := created.text(t, "vnf_id")
	if end := s.operation(created.text(t, "operation_id")); end.text(t, "state") != "succeeded" {
		t.Fatalf("the instance did not become ready: %s", end.body)
	}
	counted(s, 2, "oam", "lan")

	for _, to := range []string{"10.1.0.2", "10.2.0.2"} {
		if said, err := asks(t, ns, "left", to); err != nil || !strings.HasPrefix(said, "right-") {
			t.Errorf("left asked %s: %v\n%s", to, err, said)
		}
	}
	if said, err := asks(t, ns, "left", "10.2.0.9"); err == nil {
		t.Errorf("an address that no pod has answered:\n%s", said)
	}
	places(t, s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+id+"?pods=true", nil)), "lan[10.2.0.1]", "lan[10.2.0.2]", "oam[10.1.0.1]", "oam[10.1.0.2]")

	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
	counted(s, 1, "oam", "lan")
	for _, network := range []string{"oam", "lan"} {
		s.want(http.StatusNoContent, s.do("DELETE", "/v1/networks/site."+network+"?holder=operator", nil))
		s.want(http.StatusNotFound, s.do("GET", "/v1/networks/site."+network, nil))
	}
	if left := askKubectl(t, "get", "network-attachment-definitions", "-A", "-o", "name"); left != "" {
		t.Errorf("the region still has %s", left)
	}
}

// TestHostsKeepData creates a volume with the API. An instance writes a file to it, and is
// terminated with its namespace. The next instance, in another namespace, reads the file.
func TestHostsKeepData(t *testing.T) {
	s := startBareService(t)
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "site", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)), "labels": map[string]string{"k8splugin.io/lab": "true"},
	}))
	s.upload("store", map[string]string{"metadata.yaml": "name: store\nresources:\n- deployment: [store.yaml]\n", "store.yaml": strings.Replace(standin("store"),
		"readinessProbe:", "volumeMounts: [{name: data, mountPath: /data}], readinessProbe:", 1) + "      volumes: [{name: data, persistentVolumeClaim: {claimName: subscribers}}]\n"})
	s.want(http.StatusCreated, s.do("POST", "/v1/volumes", map[string]any{
		"name": "data", "cloud_region_id": "site", "size": "1Gi", "holder": "operator", "source": map[string]any{"host_path": map[string]any{"node": "host2", "path": "/var/lib/subscribers"}},
	}))
	instance := func(command ...string) string {
		ns := clustertest.Namespace(t)
		created := s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
			"cloud_region_id": "site", "csar_id": "store", "namespace": ns, "volumes": []any{map[string]any{"volume": "data", "claim": "subscribers"}},
		}))
		if end := s.operation(created.text(t, "operation_id")); end.text(t, "state") != "succeeded" {
			t.Fatalf("the instance did not become ready: %s", end.body)
		}
		said := askKubectl(t, append([]string{"exec", "-n", ns, "deployment/store", "--", "/standin"}, command...)...)
		s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+created.text(t, "vnf_id"), nil))
		return said
	}
	instance("write", "/data/subscriber", "001010123456789")
	if got := instance("read", "/data/subscriber"); got != "001010123456789" {
		t.Errorf("the second instance reads %q", got)
	}
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/volumes/site.data?holder=operator", nil))
}

// counted checks the number of holders of networks.
func counted(s *testService, want int, networks ...string) {
	s.t.Helper()
	for _, network := range networks {
		got := s.want(http.StatusOK, s.do("GET", "/v1/networks/site."+network, nil)).field(s.t, "use_count")
		if got != float64(want) {
			s.t.Errorf("network %s has %v holders, want %d", network, got, want)
		}
	}
}

// places checks that the pods of an instance are on different nodes, and that the
// instance shows their addresses on networks.
func places(t *testing.T, of answer, want ...string) {
	t.Helper()
	pods, _ := of.field(t, "pods").([]any)
	var nodes, addresses []string
	for _, one := range pods {
		pod := one.(map[string]any)
		nodes = append(nodes, fmt.Sprint(pod["node"]))
		for _, one := range pod["interfaces"].([]any) {
			link := one.(map[string]any)
			if name := fmt.Sprint(link["network"]); slices.ContainsFunc(want, func(one string) bool { return strings.HasPrefix(one, name+"[") }) {
				addresses = append(addresses, fmt.Sprint(link["network"], link["ips"]))
			}
		}
	}
	slices.Sort(nodes)
	slices.Sort(addresses)
	if want := []string{"host1", "host2"}; !slices.Equal(nodes, want) {
		t.Errorf("the pods are on %v, want %v", nodes, want)
	}
	if !slices.Equal(addresses, want) {
		t.Errorf("the pods have the addresses %v, want %v", addresses, want)
	}
}

// asks sends an HTTP request from a pod of a deployment to an address.
func asks(t *testing.T, namespace, deployment, address string) (string, error) {
	t.Helper()
	cmd := programKubectl(t, "exec", "-n", namespace, "deployment/"+deployment, "--", "/standin", "get", "http://"+address+":8080/")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func askKubectl(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := programKubectl(t, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

func programKubectl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("K8SPLUGIN_SANDBOX_BIN"), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.Getenv("K8SPLUGIN_SANDBOX"))
	cmd.WaitDelay = time.Second
	return cmd
}

// standin returns a Deployment whose pod is not on the node of another one's.
func standin(name string) string {
	return strings.ReplaceAll(`apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME, pair: "true"}}
    spec:
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {pair: "true"}}}
      containers:
      - {name: main, image: "localhost/standin:1", imagePullPolicy: Never, readinessProbe: {httpGet: {port: 8080}}}
`, "NAME", name)
}
