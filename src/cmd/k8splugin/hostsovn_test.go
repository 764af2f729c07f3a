//go:build hosts

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestHostsCarryPacketsOverOVN creates a network of OVN with the API, and a VNF of two pods
// on two real nodes that it connects. The controller of kud's role ovn makes the logical
// switch and a port for each pod, and removes them: the ports with the instance, and the
// switch with the network.
func TestHostsCarryPacketsOverOVN(t *testing.T) {
	clustertest.Networks(t)
	s := startBareService(t)
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "site", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)), "cni_plugins": map[string]bool{"kud-ovn": true},
	}))
	s.upload("pair", map[string]string{"metadata.yaml": "name: pair\nresources:\n- deployment: [left.yaml, right.yaml]\n", "left.yaml": standin("left"), "right.yaml": standin("right")})
	created := s.want(http.StatusCreated, s.do("POST", "/v1/networks", map[string]any{
		"name": "tenant", "cloud_region_id": "site", "driver": "ovn", "holder": "operator", "spec": map[string]any{"flavor": "kud-ovn", "mtu": 1400},
	}))
	counted(s, 1, "tenant")
	definition := strings.Fields(askKubectl(t, "get", "network-attachment-definitions", "-A", "-o", "jsonpath={.items[*].metadata.namespace}"))
	if len(definition) != 1 {
		t.Fatalf("the region has definitions in %v, want one\n%s", definition, created.body)
	}
	logical(t, definition[0]+".tenant")

	ns := clustertest.Namespace(t)
	attach := func(workload, ip string) map[string]any {
		return map[string]any{"network": "tenant", "workload": "Deployment/" + workload, "interface": "tenant", "ips": []string{ip + "/24"}}
	}
	created = s.want(http.StatusCreated, s.do("POST", "/v1/vnf_instances", map[string]any{
		"cloud_region_id": "site", "csar_id": "pair", "namespace": ns, "networks": []any{attach("left", "10.3.0.1"), attach("right", "10.3.0.2")},
	}))
	id := created.text(t, "vnf_id")
	if end := s.operation(created.text(t, "operation_id")); end.text(t, "state") != "succeeded" {
		t.Fatalf("the instance did not become ready: %s", end.body)
	}
	counted(s, 2, "tenant")
	pods := strings.Fields(askKubectl(t, "get", "pods", "-n", ns, "-o", "jsonpath={.items[*].metadata.name}"))
	logical(t, definition[0]+".tenant", ns+"."+pods[0]+".tenant", ns+"."+pods[1]+".tenant")

	if said, err := asks(t, ns, "left", "10.3.0.2"); err != nil || !strings.HasPrefix(said, "right-") {
		t.Errorf("left asked right: %v\n%s", err, said)
	}
	if said, err := asks(t, ns, "right", "10.3.0.1"); err != nil || !strings.HasPrefix(said, "left-") {
		t.Errorf("right asked left: %v\n%s", err, said)
	}
	if said, err := asks(t, ns, "left", "10.3.0.9"); err == nil {
		t.Errorf("an address that no pod has answered:\n%s", said)
	}
	places(t, s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances/"+id+"?pods=true", nil)), "tenant[10.3.0.1]", "tenant[10.3.0.2]")

	s.want(http.StatusNoContent, s.do("DELETE", "/v1/vnf_instances/"+id, nil))
	counted(s, 1, "tenant")
	logical(t, definition[0]+".tenant")
	s.want(http.StatusNoContent, s.do("DELETE", "/v1/networks/site.tenant?holder=operator", nil))
	s.want(http.StatusNotFound, s.do("GET", "/v1/networks/site.tenant", nil))
	logical(t)
}

// logical waits until the northbound database of OVN has these logical switches and
// ports, and no other.
func logical(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	deadline := time.After(time.Minute)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for got := logicalNames(t); !slices.Equal(got, want); got = logicalNames(t) {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("OVN has the logical switches and ports %v, want %v", got, want)
		}
	}
}

// logicalNames returns the sorted names of the logical switches and ports in the
// northbound database, which it asks as RFC 7047 defines.
func logicalNames(t *testing.T) (names []string) {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", filepath.Join(filepath.Dir(os.Getenv("K8SPLUGIN_SANDBOX")), "hosts", "host1", "ovn", "nb.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // only read from
	const all = `{"op": "select", "table": "%s", "where": [], "columns": ["name"]}`
	if _, err := fmt.Fprintf(conn, `{"id": 1, "method": "transact", "params": ["OVN_Northbound", `+all+`, `+all+`]}`, "Logical_Switch", "Logical_Switch_Port"); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Error  any
		Result []struct{ Rows []struct{ Name string } }
	}
	if err := json.NewDecoder(conn).Decode(&answer); err != nil || answer.Error != nil {
		t.Fatalf("the northbound database answers %v: %v", answer.Error, err)
	}
	for _, table := range answer.Result {
		for _, row := range table.Rows {
			names = append(names, row.Name)
		}
	}
	slices.Sort(names)
	return names
}
