package main

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// TestNetworkService creates a service of three members in two regions, two of which share
// a network. A member that fails undoes the others; a failed change can be kept, retried
// and undone; and a termination leaves nothing.
func TestNetworkService(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	s, ns := startBareService(t), clustertest.Namespace(t)
	for _, region := range []string{"ns-east", "ns-west"} {
		s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": region, "kubeconfig": base64.StdEncoding.EncodeToString(clustertest.Kubeconfig(t))}))
	}
	for name, files := range map[string]map[string]string{
		"ns-router": {"metadata.yaml": "name: router\nresources:\n- deployment: [router.yaml]\n", "router.yaml": serviceDeployment},
		"ns-map":    {"metadata.yaml": "name: map\nresources:\n- configMap: [cm.yaml]\n", "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n"},
		"ns-other":  {"metadata.yaml": "name: other\nresources:\n- configMap: [cm.yaml]\n", "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"},
	} {
		s.want(http.StatusCreated, s.do("PUT", "/v1/packages/"+name, rendertest.Zip(files)))
	}
	member := func(name string, group int, region, pkg string) map[string]any {
		m := map[string]any{"name": name, "group": group, "cloud_region_id": region, "csar_id": pkg, "namespace": ns}
		if pkg == "ns-router" {
			m["parameters"] = map[string]any{"name": name}
			m["networks"] = []any{map[string]any{"network": "ns-lan"}}
		}
		return m
	}
	body := func(members ...map[string]any) map[string]any {
		return map[string]any{"service_id": "vpn", "members": members, "networks": []any{map[string]any{"name": "ns-lan", "driver": "multus", "spec": map[string]any{"type": "bridge", "bridge": "br0"}}}}
	}
	instances := func() []string {
		t.Helper()
		var ids []string
		for _, in := range s.want(http.StatusOK, s.do("GET", "/v1/vnf_instances", nil)).field(t, "vnf_instances").([]any) {
			ids = append(ids, in.(map[string]any)["vnf_id"].(string))
		}
		return ids
	}
	have := func(reason string, want ...string) {
		t.Helper()
		if got := instances(); !slices.Equal(got, want) {
			t.Errorf("%s: the instances are %v, want %v", reason, got, want)
		}
	}
	gone := func() {
		t.Helper()
		for s.do("GET", "/v1/networks/ns-east.ns-lan", nil).status != http.StatusNotFound {
			<-time.After(100 * time.Millisecond) // its own operation deletes it
		}
	}
	fw, sink, gen := member("fw", 1, "ns-east", "ns-router"), member("sink", 1, "ns-east", "ns-router"), member("gen", 2, "ns-west", "ns-map")

	// Two members with an object of the same name: the second one fails when the first exists.
	refused := s.want(http.StatusConflict, s.do("POST", "/v1/services", body(fw, sink, gen, member("twin", 3, "ns-west", "ns-map"))))
	if text := refused.text(t, "detail"); !strings.Contains(text, "member twin") {
		t.Errorf("the failure is %q", text)
	}
	have("the other members are undone")
	gone()

	s.want(http.StatusCreated, s.do("POST", "/v1/services", body(gen, fw, sink)))
	have("all members exist", "vpn.fw", "vpn.gen", "vpn.sink")
	if n := s.want(http.StatusOK, s.do("GET", "/v1/networks/ns-east.ns-lan", nil)).field(t, "use_count"); n != 2.0 {
		t.Errorf("the network has %v users", n)
	}
	s.want(http.StatusConflict, s.do("DELETE", "/v1/vnf_instances/vpn.gen", nil))

	s.want(http.StatusConflict, s.do("PATCH", "/v1/services/vpn", map[string]any{
		"members": []any{fw, gen, member("new", 3, "ns-west", "ns-other"), member("twin", 4, "ns-west", "ns-other")}, "on_failure": "keep",
	}))
	if state := s.want(http.StatusOK, s.do("GET", "/v1/services/vpn", nil)).text(t, "state"); state != "failed" {
		t.Errorf("the service is %s", state)
	}
	s.want(http.StatusConflict, s.do("PATCH", "/v1/services/vpn", map[string]any{})) // the retry
	have("a kept change stays", "vpn.fw", "vpn.gen", "vpn.new", "vpn.sink")
	s.want(http.StatusOK, s.do("POST", "/v1/services/vpn/undo", map[string]any{}))
	have("the undo restores the former members", "vpn.fw", "vpn.gen", "vpn.sink")

	s.want(http.StatusNoContent, s.do("DELETE", "/v1/services/vpn", nil))
	have("nothing is left")
	gone()
}

const serviceDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "${name}"}
spec:
  replicas: 0
  selector: {matchLabels: {app: "${name}"}}
  template:
    metadata: {labels: {app: "${name}"}}
    spec:
      containers:
      - {name: router, image: registry.example.com/router:1}
`
