package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestWrongNetworks makes requests with wrong networks and attachments, over the API of
// the service. Each is refused with the path of its field, and none changes anything.
func TestWrongNetworks(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	s := startBareService(t)
	ns := clustertest.Namespace(t)
	s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{
		"cloud_region_id": "wrong", "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t)),
	}))
	s.upload("router", map[string]string{"metadata.yaml": "resources:\n- deployment: [router.yaml]\n", "router.yaml": routerDeployment})
	s.upload("two", map[string]string{
		"metadata.yaml": "resources:\n- deployment: [router.yaml]\n- statefulset: [db.yaml]\n", "router.yaml": routerDeployment, "db.yaml": threeDatabases,
	})
	for name, spec := range map[string]string{
		"wrong-static": `{"type": "macvlan", "master": "eth1", "ipam": {"type": "static"}}`,
		"wrong-pool":   `{"type": "bridge", "bridge": "br0", "ipam": {"type": "whereabouts", "range": "10.2.0.0/24"}}`,
		"wrong-plain":  `{"type": "ipvlan", "ipam": {"type": "dhcp"}}`,
	} {
		s.want(http.StatusCreated, s.do("POST", "/v1/networks", map[string]any{
			"name": name, "cloud_region_id": "wrong", "driver": "multus", "spec": json.RawMessage(spec), "holder": "ann",
		}))
	}
	before := s.records()

	for spec, field := range wrongSpecs {
		a := s.do("POST", "/v1/networks", map[string]any{"name": "wrong-new", "cloud_region_id": "wrong", "driver": "multus", "spec": json.RawMessage(spec)})
		wantField(t, spec, a, field)
		attached := fmt.Sprintf(`[{"network": "wrong-new", "create": {"driver": "multus", "spec": %s}}]`, spec)
		a = s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "wrong", "csar_id": "router", "namespace": ns, "networks": json.RawMessage(attached)})
		wantField(t, attached, a, "networks[0].create."+field)
	}
	for attached, field := range wrongAttachments {
		a := s.do("POST", "/v1/vnf_instances", map[string]any{"cloud_region_id": "wrong", "csar_id": "two", "namespace": ns, "networks": json.RawMessage(attached)})
		wantField(t, attached, a, field)
	}
	if n := len(wrongSpecs) + len(wrongAttachments); n < 30 {
		t.Errorf("only %d requests are wrong", n)
	}
	if diff := cmp.Diff(before, s.records()); diff != "" {
		t.Errorf("refused requests changed the records (-before +after)\n%s", diff)
	}
}

// wantField checks that a request was refused because of a field.
func wantField(t *testing.T, request string, a answer, field string) {
	t.Helper()
	var refused struct{ Errors []mistake }
	if err := json.Unmarshal(a.body, &refused); err != nil {
		t.Fatalf("%s: %v in %s", request, err, a.body)
	}
	if a.status < 400 || a.status > 422 || !slices.ContainsFunc(refused.Errors, func(m mistake) bool { return m.Field == field }) {
		t.Errorf("%s: status %d, want an error of %s: %s", request, a.status, field, a.body)
	}
}

// wrongSpecs are specifications of networks, with their wrong fields.
var wrongSpecs = map[string]string{
	`{}`:                                                                                      "spec.type",
	`{"type": "sriovnet"}`:                                                                    "spec.type",
	`{"type": "macvlan", "vlan": 5}`:                                                          "spec.vlan",
	`{"type": "macvlan", "mode": "fast"}`:                                                     "spec.mode",
	`{"type": "macvlan", "mtu": 1500.5}`:                                                      "spec.mtu",
	`{"type": "macvlan", "master": "a/b"}`:                                                    "spec.master",
	`{"type": "macvlan", "cni_version": "9.9.9"}`:                                             "spec.cni_version",
	`{"type": "bridge"}`:                                                                      "spec.bridge",
	`{"type": "bridge", "bridge": "b", "vlan": 4095}`:                                         "spec.vlan",
	`{"type": "bridge", "bridge": "b", "vlanTrunk": [{"id": 0}]}`:                             "spec.vlanTrunk[0].id",
	`{"type": "bridge", "bridge": "b", "isGateway": true}`:                                    "spec.isGateway",
	`{"type": "ipvlan"}`:                                                                      "spec.ipam",
	`{"type": "vlan", "ipam": {"type": "static"}}`:                                            "spec.master",
	`{"type": "macvlan", "ipam": {"type": "host-local"}}`:                                     "spec.ipam.ranges",
	`{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "10.0.0.5/24"}}`:            "spec.ipam.subnet",
	`{"type": "macvlan", "ipam": {"type": "host-local", "ranges": [[]]}}`:                     "spec.ipam.ranges[0]",
	`{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}}`:            "spec.ipam.type", // several nodes
	`{"type": "macvlan", "ipam": {"type": "static", "addresses": [{"address": "10.0.0.9"}]}}`: "spec.ipam.addresses[0].address",
	`{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24", "exclude": ["10.0.1.0/24"]}}`: "spec.ipam.exclude[0]",
	`{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}, "fixed": ["10.0.1.1"]}`:      "spec.fixed[0]",
	`{"type": "macvlan", "chain": [{"type": "tuning"}, {"type": "tuning"}]}`:                                   "spec.chain[1].type",
	`{"type": "macvlan", "capabilities": {"bandwidth": true}}`:                                                 "spec.capabilities.bandwidth",
}

// wrongAttachments are attachments of a package with a Deployment of one pod and a
// StatefulSet of three.
var wrongAttachments = map[string]string{
	`[{"network": "Wrong"}]`:                                                                                         "networks[0].network",
	`[{"network": "wrong-none", "workload": "router"}]`:                                                              "networks[0].network",
	`[{"network": "wrong-pool"}]`:                                                                                    "networks[0].workload",
	`[{"network": "wrong-pool", "workload": "firewall"}]`:                                                            "networks[0].workload",
	`[{"network": "wrong-pool", "workload": "router", "interface": "eth0"}]`:                                         "networks[0].interface",
	`[{"network": "wrong-pool", "workload": "router", "interface": "Net_1"}]`:                                        "networks[0].interface",
	`[{"network": "wrong-pool", "workload": "router", "interface": "net1"}]`:                                         "networks[0].interface", // of the package
	`[{"network": "wrong-static", "workload": "router"}]`:                                                            "networks[0].ips",
	`[{"network": "wrong-static", "workload": "router", "ips": ["10.1.0.9"]}]`:                                       "networks[0].ips[0]",
	`[{"network": "wrong-static", "workload": "db", "ips": ["10.1.0.9/24"]}]`:                                        "networks[0].ips",
	`[{"network": "wrong-pool", "workload": "router", "ips": ["10.2.0.9/24"]}]`:                                      "networks[0].ips",
	`[{"network": "wrong-pool", "workload": "router", "mac": "02:00"}]`:                                              "networks[0].mac",
	`[{"network": "wrong-plain", "workload": "router", "mac": "02:00:00:00:00:09"}]`:                                 "networks[0].mac",
	`[{"network": "wrong-plain", "workload": "router", "bandwidth": {"egress_rate": 1}}]`:                            "networks[0].bandwidth",
	`[{"network": "wrong-pool", "workload": "router", "default_route": ["10.2.0.1", "10.2.0.2"]}]`:                   "networks[0].default_route[1]",
	`[{"network": "wrong-pool", "workload": "router", "create": {"driver": "none", "spec": {}}}]`:                    "networks[0].create.driver",
	`[{"network": "wrong-pool", "workload": "router", "create": {"driver": "multus", "spec": {"type": "macvlan"}}}]`: "networks[0].create.spec.type",
}

const threeDatabases = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: db, image: registry.example.com/db:1}
`
