package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/simulator/so"
)

// orchestra is a service that writes to a simulated A&AI, and SO, which drives both.
type orchestra struct {
	caller

	aai *simulatedAAI
	so  *so.Driver
	vnf so.VNF
}

// newOrchestra starts a service with a cloud region of its own name, and the definition of
// the firewall.
func newOrchestra(t *testing.T, region, objects string) *orchestra {
	t.Helper()
	a := newAAI(t, nil)
	o := &orchestra{aai: a, vnf: so.VNF{
		Owner: "acme", Region: region, Tenant: "edge-1", Service: region + "-service", ID: region + "-vnf", Type: "vfw/1", Module: region + "-module",
		Invariant: "invariant-1", Version: "version-1", Customization: "customization-1", Profile: "vfw", Release: region + "-stack",
		Values: map[string]string{"vnf-name": "from-sdnc", "ssh.port": "2022"},
	}}
	at := "/cloud-infrastructure/cloud-regions/cloud-region/acme/" + region
	a.put(at, `{"cloud-type": "k8s", "cloud-region-version": "1.0"}`)
	a.put(at+"/tenants/tenant/edge-1", `{"tenant-name": "edge"}`)
	s := startBareService(t, a.settings(objects), func(c *Config) { c.CallbackAllow, c.AAIRegions.Prefixes = "127.0.0.1", true })
	o.caller = caller{testService: s, ns: clustertest.Namespace(t)}
	o.register(region)
	o.define("invariant-1", "customization-1", "vfw")
	o.so = o.drive(so.Server{URL: s.url, Client: s.client})
	return o
}

// drive returns an SO that uses a service.
func (o *orchestra) drive(service so.Server) *so.Driver {
	o.t.Helper()
	d, err := so.New(so.Config{
		Service: service, AAI: so.Server{URL: o.aai.url, User: "so", Password: "so"},
		Interval: 50 * time.Millisecond, Limit: 2 * time.Minute, Report: func(line string) { o.t.Log(line) },
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return d
}

// empty fails the test unless A&AI has nothing of the service.
func (o *orchestra) empty() {
	o.t.Helper()
	tenant := "/cloud-infrastructure/cloud-regions/cloud-region/acme/" + o.vnf.Region + "/tenants/tenant/edge-1"
	for path, element := range map[string]string{tenant + "/k8s-resources": "k8s-resource", tenant + "/vservers": "vserver", "/network/l3-networks": "l3-network", "/network/generic-vnfs": "generic-vnf"} {
		if left := o.aai.list(path, element, "data-owner"); len(left) > 0 {
			o.t.Errorf("A&AI still has %d objects of type %s", len(left), element)
		}
	}
}

// TestClientSOBroker has SO's core create a stack through the broker, as if it asked
// OpenStack's Heat, and delete it.
func TestClientSOBroker(t *testing.T) {
	t.Parallel()
	o := newOrchestra(t, "so-heat", "k8s-resource,vserver")
	o.so = o.drive(so.Server{URL: o.url}) // swagger.yaml has paths without the broker's prefix
	o.vnf.OOF = map[string]any{"attributes": []any{map[string]string{"attribute_name": "vnf-name", "attribute_value": "from-oof"}}}
	o.vnf.User = map[string]string{"ssh.user": "jane"}
	fails := func(reason string, vnf so.VNF, text string) {
		t.Helper()
		if _, err := o.so.CreateStack(t.Context(), vnf); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if err := o.so.Plan(t.Context(), o.vnf); err != nil {
		t.Fatal(err)
	}
	wrong := o.vnf
	wrong.Customization = "unknown"
	fails("the definition does not exist", wrong, "POST")
	a := o.send(t.Context(), "POST", "/acme/so-heat/infra_workload", []byte(strings.Replace(stackRequest, "k8s-rb-profile-name", "profile", 1)), "Content-Type", "application/json")
	if !strings.Contains(string(a.body), "k8s-rb-profile-name is missing from directives") || a.status != http.StatusBadRequest {
		t.Errorf("A13: a profile is needed: %d %s", a.status, a.body)
	}
	made, err := o.so.CreateStack(t.Context(), o.vnf)
	if err != nil {
		t.Fatal(err)
	}
	ssh := o.there("it is there at once", "v1", "ConfigMap", "ssh-service")
	got := map[string]string{"vnf": value(t, ssh, "data", "vnf"), "port": value(t, ssh, "data", "port"), "user": value(t, ssh, "data", "user"), "instance": value(t, ssh, "data", "instance")}
	if diff := cmp.Diff(map[string]string{"vnf": "from-oof", "port": "2022", "user": "jane", "instance": made.ID}, got); diff != "" {
		t.Errorf("SDNC's directives count less than OOF's, and the user's most (-want +got):\n%s", diff)
	}
	fails("it is found by its name", o.vnf, "there is a stack with this name: "+made.ID)
	if made.Listed, err = o.so.UpdateInventory(t.Context(), o.vnf, made); err != nil {
		t.Fatal(err)
	}
	network := clustertest.Documents(t, `{apiVersion: `+o.ns+`.`+networkGroup+`/v1alpha1, kind: Network, metadata: {name: probe, namespace: `+o.ns+`}}`)[0]
	clustertest.Collected(t, network, "networks") // the stack has a network of this new kind
	if err := o.so.DeleteStack(t.Context(), o.vnf, made); err != nil {
		t.Fatal(err)
	}
	if err := o.so.Clear(t.Context(), o.vnf); err != nil {
		t.Fatal(err)
	}
	o.empty()
	if err := o.so.Heat(t.Context(), o.vnf); err != nil {
		t.Errorf("once more, with the name that is free again: %v", err)
	}
}

// stackRequest is a request of SO for a stack.
const stackRequest = `{
  "generic-vnf-id": "v", "vf-module-id": "m", "vf-module-model-invariant-id": "invariant-1", "vf-module-model-version-id": "version-1",
  "vf-module-model-customization-id": "customization-1", "oof_directives": {}, "user_directives": {}, 
  "sdnc_directives": {"attributes": [{"attribute_name": "k8s-rb-profile-name", "attribute_value": "vfw"}]},
  "template_type": "heat", "template_data": {"stack_name": "vfw-stack", "disable_rollback": true, "timeout_mins": 118}
}`

// TestSOMacro has SO's CNF adapter create an instance, upgrade it and delete it.
func TestSOMacro(t *testing.T) {
	t.Parallel()
	o := newOrchestra(t, "so-macro", "k8s-resource,vserver")
	if err := o.so.Macro(t.Context(), o.vnf, map[string]string{"vnf-name": "vfw-2", "global.onapPrivateNetworkName": "other-net"}, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	o.empty()
}

// TestSONative creates a VNF instance through the native API and deletes it.
func TestSONative(t *testing.T) {
	t.Parallel()
	o := newOrchestra(t, "so-native", "k8s-resource,vserver")
	o.upload("web", web(goodImage))
	err := o.so.Native(t.Context(), o.vnf, so.Request{
		Package: "web", Name: "so-native", Namespace: o.ns, OOF: []map[string]any{{"directives": []any{}}}, Values: map[string]any{"replicas": 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.empty()
}

// TestSONetworks creates virtual links in two regions, shares them, and deletes them.
func TestSONetworks(t *testing.T) {
	t.Parallel()
	clustertest.Networks(t)
	o := newOrchestra(t, "so-links", "k8s-resource,network")
	o.aai.put("/cloud-infrastructure/cloud-regions/cloud-region/acme/so-links-2", `{"cloud-type": "k8s"}`)
	o.register("so-links-2")
	o.want(http.StatusOK, o.do("PATCH", "/v1/cloud_regions/so-links", map[string]any{"aai_tenant": "edge-1"}))
	o.upload("router", map[string]string{"metadata.yaml": "resources:\n- deployment: [router.yaml]\n", "router.yaml": strings.ReplaceAll(routerDeployment, "\n      annotations: {k8s.v1.cni.cncf.io/networks: kube-system/own}", "")})
	spec := map[string]any{"type": "bridge", "bridge": "br7", "vlan": 7, "ipam": map[string]any{"type": "whereabouts", "range": "10.7.0.0/24", "gateway": "10.7.0.1"}}
	link := so.Network{Name: "so-lan", Driver: "multus", Spec: spec, Subnets: []string{"10.7.0.0/24"}, VLANs: []string{"7"}}
	second := link
	second.Region, second.Name = "so-links-2", "so-lan-2" // both regions are the sandbox
	err := o.so.Networks(t.Context(), o.vnf, so.Links{
		Network: link, Second: second, VNF: so.Request{Package: "router", Name: "so-links", Namespace: o.ns},
		Refused: []so.Network{
			{Name: "so-none", Driver: "multus", Spec: map[string]any{"type": "macvlan", "master": map[string]any{"region_interface": "none"}, "ipam": map[string]any{"type": "static"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.empty()
	if kept := o.want(http.StatusOK, o.do("GET", "/v1/networks", nil)).field(t, "networks").([]any); len(kept) > 0 {
		t.Errorf("networks are left: %v", kept)
	}
}
