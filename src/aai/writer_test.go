package aai_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aai"
)

func TestLifeOfAnInstance(t *testing.T) {
	t.Parallel()
	v := newInventory(t, 0)
	n := scheme.Network(network())
	net := v.write([]aai.Document{n}, nil, false)
	r := v.write(all(instance()), nil, false)
	if diff := cmp.Diff([]string{"POST 1 201", "POST 3 201"}, v.requests()); diff != "" {
		t.Errorf("a new instance is one transaction, and nothing is read (-want +got):\n%s", diff)
	}
	server := v.read(tenantPath + "/vservers/vserver/5b1d")
	links, _ := server["l-interfaces"].(map[string]any)["l-interface"].([]any)
	if len(links) != 2 || server["relationship-list"] == nil {
		t.Errorf("the vserver misses interfaces or edges: %v", server)
	}

	again := v.write(all(instance()), r.Written, false)
	if got := v.requests(); got != nil {
		t.Errorf("nothing has changed, and there are requests: %q", got)
	}
	verified := v.write(all(instance()), again.Written, true)
	if diff := cmp.Diff([]string{"GET 0 200", "GET 0 200", "GET 0 200"}, v.requests()); diff != "" {
		t.Errorf("all is equal, and something is written (-want +got):\n%s", diff)
	}

	gone := v.write(nil, verified.Written, false)
	if len(gone.Written) != 0 || v.read(tenantPath+"/k8s-resources") != nil || v.read(tenantPath+"/vservers") != nil {
		t.Errorf("the instance is gone, and objects remain: %v", gone.Written)
	}
	v.write(nil, net.Written, false)
	v.delete(modulePath)
	v.delete(vnfPath)
	v.delete(tenantPath)
}

// TestCorrections has another client change something, and writes again.
func TestCorrections(t *testing.T) {
	t.Parallel()
	const server = tenantPath + "/vservers/vserver/5b1d"
	const link = server + "/l-interfaces/l-interface/net1"
	ipv4 := link + "/l3-interface-ipv4-address-list/10.0.3.7"
	cases := map[string]struct {
		reason  string
		disturb func(v *inventory)
		want    int // transactions
		stays   func(v *inventory) bool
	}{
		"nothing":       {"nothing is written", func(*inventory) {}, 0, nil},
		"attribute":     {"our attribute is corrected", func(v *inventory) { v.as("PATCH", server, `{"vserver-name":"other"}`) }, 1, nil},
		"removed":       {"a removed attribute is added", func(v *inventory) { v.as("PATCH", server, `{"vserver-name2":null}`) }, 1, nil},
		"version":       {"another version alone is no difference", func(v *inventory) { v.as("PATCH", server, `{}`) }, 0, nil},
		"others'":       {"an attribute of others is no difference", func(v *inventory) { v.as("PATCH", server, `{"numa":"x"}`) }, 0, nil},
		"kept":          {"and it stays when ours is corrected", func(v *inventory) { v.as("PATCH", server, `{"numa":"x","vserver-name":"y"}`) }, 1, func(v *inventory) bool { return v.read(server)["numa"] == "x" }},
		"child":         {"a child is corrected at its own path", func(v *inventory) { v.as("PATCH", link, `{"macaddr":"x"}`) }, 1, nil},
		"grandchild":    {"a missing address is added", func(v *inventory) { v.delete(ipv4) }, 1, nil},
		"child gone":    {"a missing interface is added with its addresses", func(v *inventory) { v.delete(link) }, 1, nil},
		"our child":     {"an interface of ours that is not wanted is deleted", func(v *inventory) { v.as("PUT", link+"9", `{"data-owner":"k8splugin"}`) }, 1, func(v *inventory) bool { return v.read(link+"9") == nil }},
		"others' child": {"one of others stays", func(v *inventory) { v.as("PUT", link+"9", `{"data-owner":"x"}`) }, 0, func(v *inventory) bool { return v.read(link+"9") != nil }},
		"gone":          {"a missing object is created", func(v *inventory) { v.delete(server) }, 1, nil},
		"edge": {"a missing edge is added", func(v *inventory) {
			v.as("DELETE", server+"/relationship-list/relationship", `{"related-link":"`+vnfPath+`"}`)
		}, 1, nil},
		"edge of a child": {"a missing edge of an address, too", func(v *inventory) {
			v.as("DELETE", ipv4+"/relationship-list/relationship", `{"related-link":"/network/l3-networks/l3-network/r1.n3"}`)
		}, 1, nil},
		"other VNF": {"an edge to another VNF is replaced", func(v *inventory) {
			v.as("PUT", vnfPath+"2", `{"vnf-type":"x"}`)
			v.as("DELETE", server+"/relationship-list/relationship", `{"related-link":"`+vnfPath+`"}`)
			v.as("PUT", server+"/relationship-list/relationship", `{"related-link":"`+vnfPath+`2"}`)
		}, 1, func(v *inventory) bool { return v.read(vnfPath + "2")["relationship-list"] == nil }},
		"other edge": {"an edge to an object of another type stays", func(v *inventory) {
			v.as("PUT", regionPath+"/flavors/flavor/f", `{"flavor-name":"f","flavor-selflink":"x"}`)
			v.as("PUT", server+"/relationship-list/relationship", `{"related-link":"`+regionPath+`/flavors/flavor/f"}`)
		}, 0, func(v *inventory) bool { return v.read(regionPath + "/flavors/flavor/f")["relationship-list"] != nil }},
		"several": {"all corrections are one transaction", func(v *inventory) {
			v.as("PATCH", server, `{"vserver-name":"x"}`)
			v.as("PATCH", link, `{"macaddr":"x"}`)
			v.delete(ipv4)
			v.as("DELETE", server+"/relationship-list/relationship", `{"related-link":"`+vnfPath+`"}`)
		}, 1, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newInventory(t, 0)
			v.write([]aai.Document{scheme.Network(network())}, nil, false)
			r := v.write(all(instance()), nil, false)
			tc.disturb(v)
			r = v.write(all(instance()), r.Written, true)
			if r.Transactions != tc.want {
				t.Errorf("%s: %d transactions, want %d", tc.reason, r.Transactions, tc.want)
			}
			if tc.stays != nil && !tc.stays(v) {
				t.Errorf("%s: it is not so", tc.reason)
			}
			if r = v.write(all(instance()), r.Written, true); r.Transactions != 0 {
				t.Errorf("%s: the correction is not complete", tc.reason)
			}
		})
	}
}

// TestChanges changes what is wanted.
func TestChanges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		edit   func(in *aai.Instance)
		want   []string
	}{
		"none":      {"nothing has changed", func(*aai.Instance) {}, nil},
		"object":    {"an object is read and replaced", func(in *aai.Instance) { in.Objects[0].Generation++ }, []string{"GET 0 200", "POST 1 201"}},
		"phase":     {"a phase concerns the vserver only", func(in *aai.Instance) { in.Pods[0].Phase = "Failed" }, []string{"GET 0 200", "POST 1 201"}},
		"interface": {"an interface that is gone is deleted alone", func(in *aai.Instance) { in.Pods[0].Interfaces = in.Pods[0].Interfaces[:1] }, []string{"GET 0 200", "POST 1 201"}},
		"address": {"an address that is new is added alone", func(in *aai.Instance) {
			in.Pods[0].Interfaces[0].Addresses[0].IP = in.Pods[0].Interfaces[0].Addresses[0].IP.Next()
		}, []string{"GET 0 200", "POST 2 201"}},
		"attribute": {"an attribute that is no longer wanted is removed", func(in *aai.Instance) { in.Pods[0].Interfaces[1].MTU = 0 }, []string{"GET 0 200", "POST 1 201"}},
		"pods":      {"a new pod and a removed one are one transaction", func(in *aai.Instance) { in.Pods[0].UID, in.Pods[0].Name = "77", "upf-1" }, []string{"GET 0 200", "GET 0 200", "POST 4 201"}},
		"no VNF":    {"edges that are no longer wanted stay", func(in *aai.Instance) { in.VNF = "" }, []string{"GET 0 200", "GET 0 200", "GET 0 200"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newInventory(t, 0)
			v.write([]aai.Document{scheme.Network(network())}, nil, false)
			r := v.write(all(instance()), nil, false)
			v.requests()
			in := instance()
			tc.edit(&in)
			r = v.write(all(in), r.Written, false)
			if diff := cmp.Diff(tc.want, v.requests()); diff != "" {
				t.Errorf("%s: the requests differ (-want +got):\n%s", tc.reason, diff)
			}
			if r = v.write(all(in), r.Written, true); r.Transactions != 0 {
				t.Errorf("%s: the change is not complete", tc.reason)
			}
		})
	}
}

// TestFlavors writes flavors, whose capabilities A&AI does not delete with them.
func TestFlavors(t *testing.T) {
	t.Parallel()
	v := newInventory(t, 0)
	docs := scheme.Flavors(instance().Place, aai.ClassesOf(nodes()))
	r := v.write(docs, nil, false)
	if r = v.write(docs, r.Written, true); r.Transactions != 0 {
		t.Error("nothing has changed, and something is written")
	}
	smaller := nodes()
	smaller[0].Memory = 1 << 30
	docs = scheme.Flavors(instance().Place, aai.ClassesOf(smaller))
	v.requests()
	r = v.write(docs, r.Written, false)
	if diff := cmp.Diff([]string{"GET 0 200", "POST 2 201"}, v.requests()); diff != "" {
		t.Errorf("a smaller node changes the flavor and one attribute (-want +got):\n%s", diff)
	}
	r = v.write(docs[:1], r.Written, false)
	lost := slices.Sorted(maps.Keys(r.Written))
	region := aai.Place{Owner: "k8s", Region: "r1"}
	v.as("PUT", regionPath+"/flavors/flavor/f", `{"flavor-name":"f","flavor-selflink":"x","data-owner":"other"}`)
	strays, err := v.writer.Strays(t.Context(), region, func(string) bool { return false })
	if diff := cmp.Diff(lost, slices.Sorted(maps.Keys(strays))); diff != "" || err != nil {
		t.Errorf("the flavors of a lost record are strays, those of others are not: %v (-want +got):\n%s", err, diff)
	}
	v.write(nil, r.Written, false)
	v.delete(regionPath + "/flavors/flavor/f")
	if v.read(regionPath+"/flavors") != nil {
		t.Error("flavors remain, which block the deletion of the region")
	}
	region.Region = "r9"
	r, err = v.writer.Write(t.Context(), scheme.Flavors(region, aai.ClassesOf(nodes())), nil, false)
	if diff := cmp.Diff([]string{region.RegionPath()}, r.Missing); diff != "" || err != nil {
		t.Errorf("flavors wait for their region: %v (-want +got):\n%s", err, diff)
	}
}

// TestAdapted reads what SO's adapter has written in the tenants of a region.
func TestAdapted(t *testing.T) {
	t.Parallel()
	v := newInventory(t, 0)
	const body = `{"name": "x", "group": "", "version": "v1", "kind": "Pod", "namespace": "", "selflink": "x", "data-owner": "%s", "data-source": "%s", "labels": [%s]}`
	second := regionPath + "/tenants/tenant/t2"
	v.as("PUT", second, `{"tenant-name": "other"}`)
	for path, o := range map[string][3]string{
		tenantPath + "/k8s-resources/k8s-resource/1": {"CnfAdapter", "K8sPlugin", `"app=x", "k8splugin.io/rb-instance-id=fox"`},
		tenantPath + "/k8s-resources/k8s-resource/2": {"CnfAdapter", "K8sPlugin", `"app=x"`},
		tenantPath + "/k8s-resources/k8s-resource/3": {"k8splugin", "K8sPlugin", `"k8splugin.io/rb-instance-id=fox"`},
		tenantPath + "/k8s-resources/k8s-resource/4": {"CnfAdapter", "other", `"k8splugin.io/rb-instance-id=fox"`},
		second + "/k8s-resources/k8s-resource/5":     {"CnfAdapter", "K8sPlugin", `"k8splugin.io/rb-instance-id=bear"`},
	} {
		if w := v.as("PUT", path, fmt.Sprintf(body, o[0], o[1], o[2])); w.Code != http.StatusCreated {
			t.Fatal(w.Code, w.Body)
		}
	}
	p := aai.Place{Owner: instance().Place.Owner, Region: instance().Place.Region}
	got, err := v.writer.Adapted(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"fox": {tenantPath + "/k8s-resources/k8s-resource/1"}, "bear": {second + "/k8s-resources/k8s-resource/5"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("only objects of the adapter with the label of an instance (-want +got):\n%s", diff)
	}
	p.Region = "none"
	if got, err := v.writer.Adapted(t.Context(), p); err != nil || len(got) > 0 {
		t.Errorf("a region without tenants has none: %v, %v", got, err)
	}
}
