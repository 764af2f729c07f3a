package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/simulator/so"
)

// soHealthCheck is a run of tests, as SO's CNF adapter reads it.
type soHealthCheck struct {
	ID     string `json:"healthcheck-id"`
	Status string `json:"status"`
}

// TestClientCNFAdapter is what SO's macro flows make the CNF adapter do. The simulator of SO
// reads the responses; the test looks at the cluster.
func TestClientCNFAdapter(t *testing.T) {
	t.Parallel()
	o := newOrchestra(t, "so-adapter", "k8s-resource")
	o.header = []string{"Accept", "application/json", "Content-Type", "application/json", "User-Agent", "Apache-HttpClient/4.5.13"}
	none := "GET /v1/instance?rb-name=invariant-1&rb-version=customization-1&profile-name=vfw"
	o.told("there is nothing that it could be", http.StatusInternalServerError, none, nil, "Did not find any objects with tag: instance")
	a := o.adapter()
	o.right(o.so.Plan(t.Context(), o.vnf))
	id, err := a.Create(t.Context(), o.vnf)
	o.right(err)
	again, err := a.Create(t.Context(), o.vnf)
	if o.right(err); again != id {
		t.Errorf("the same request makes %s, not %s", again, id)
	}
	empty := o.ask("A8: no instance has the name", http.StatusOK, "GET /v1/instance?rb-name=nope", nil)
	if n := len(o.list("A8: that is no error, and no null", empty)); n != 0 {
		t.Errorf("A8: %d have it", n)
	}
	o.told("A10: its subscription is not there", http.StatusInternalServerError, "GET /v1/instance/"+id+"/status/subscription/"+id+"-cnf-adapter", nil, "no documents")
	o.right(a.UpdateInventory(t.Context(), o.vnf, id))
	o.poll("what changes before the first look at the instance is not reported", "GET /v1/instance/"+id, func(answer) bool {
		return slices.ContainsFunc(o.testService.keys(), func(key string) bool { return strings.HasPrefix(key, "baselines/") })
	})
	o.restart(id)
	o.right(a.Upgrade(t.Context(), o.vnf, id, map[string]string{"vnf-name": "vfw-2", "global.onapPrivateNetworkName": "other-net"}))
	if vnf := value(t, o.there("the new values count at once", "v1", "ConfigMap", "ssh-service"), "data", "vnf"); vnf != "vfw-2" {
		t.Errorf("the VNF's name is %q", vnf)
	}
	o.there("what is new is there", o.ns+"."+networkGroup+"/v1alpha1", "Network", "other-net")
	if old := o.kubectl(o.ns+"."+networkGroup+"/v1alpha1", "Network", "onap-private-net"); old != nil && old.GetDeletionTimestamp() == nil {
		t.Error("what is not of it any more is still there")
	}
	until(t, "A15: the adapter is notified", func() bool { return a.Notifications() > 0 })
	o.health(id)
	o.passThrough(id)
	o.right(a.Delete(t.Context(), o.vnf, id))
	o.right(o.so.Clear(t.Context(), o.vnf))
	o.empty()
	o.ask("the region waits for what leaves it", http.StatusNoContent, "DELETE /v1/connectivity-info/so-adapter", nil)
}

// right fails the test if SO does not accept a response.
func (o *orchestra) right(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// adapter starts SO's CNF adapter.
func (o *orchestra) adapter() *so.Adapter {
	o.t.Helper()
	a, err := o.so.StartAdapter(o.t.Context(), "127.0.0.1:0")
	o.right(err)
	o.t.Cleanup(func() {
		if err := a.Close(); err != nil {
			o.t.Error(err)
		}
	})
	return a
}

// restart starts another adapter while there are instances: one with a subscription, and
// one without.
func (o *orchestra) restart(id string) {
	o.t.Helper()
	const all = "/v1/rb/definition/invariant-1/customization-1/profile"
	o.ask("another one, in another namespace", http.StatusCreated, "POST "+all,
		map[string]any{"rb-name": "invariant-1", "rb-version": "customization-1", "profile-name": "other", "namespace": clustertest.Namespace(o.t)})
	o.ask("its overlay", http.StatusOK, "POST "+all+"/other/content", o.tarball("firewall/profile"))
	second := o.ask("is brought up", http.StatusCreated, "POST /v1/instance", map[string]any{
		"cloud-region": o.vnf.Region, "rb-name": "invariant-1", "rb-version": "customization-1", "profile-name": "other", "release-name": nil, "labels": nil,
	}).text(o.t, "id")
	if found := o.adapter().Found; !slices.Equal(found, []string{id}) {
		o.t.Errorf("the adapter finds the subscriptions of %v", found)
	}
	o.ask("it is not needed any more", http.StatusAccepted, "DELETE /v1/instance/"+second, nil)
}

// health runs the tests of the chart.
func (o *orchestra) health(id string) {
	o.t.Helper()
	at := "/v1/instance/" + id + "/healthcheck"
	begun := strictly[soHealthCheck](o.t, "a run has two fields", o.ask("a run is begun", http.StatusCreated, "POST "+at, nil))
	if !strings.EqualFold(begun.Status, "RUNNING") {
		o.t.Errorf("the run is %s", begun.Status)
	}
	ended := o.poll("it ends", "GET "+at+"/"+begun.ID, func(a answer) bool { return !strings.EqualFold(a.text(o.t, "status"), "RUNNING") })
	o.has("and has succeeded", ended, "status", any("Succeeded"))
	o.ask("it is forgotten", http.StatusAccepted, "DELETE "+at+"/"+begun.ID, nil)
	o.told("for good", http.StatusInternalServerError, "GET "+at+"/"+begun.ID, nil, noDocuments)
}

// passThrough is what the adapter asks because it is asked: it hands on what it
// was given, and makes links to itself of it.
func (o *orchestra) passThrough(id string) {
	o.t.Helper()
	query := url.Values{"Kind": {"Deployment"}, "ApiVersion": {"apps/v1"}, "Namespace": {"elsewhere"}, "Labels": {"app=sink,release"}}
	got := o.ask("its own objects, wherever it is said that they are", http.StatusOK, "GET /v1/instance/"+id+"/query?"+query.Encode(), nil)
	var s struct {
		Ready     bool                    `json:"ready"`
		Count     int                     `json:"resourceCount"`
		Resources []struct{ Name string } `json:"resourcesStatus"`
	}
	if err := json.Unmarshal(got.body, &s); err != nil || s.Ready || s.Count != 1 || s.Resources[0].Name != "sink" {
		o.t.Errorf("the query finds %s", got.body)
	}
	query = url.Values{"CloudRegion": {o.vnf.Region}, "Kind": {"Pod"}, "ApiVersion": {"v1"}, "Namespace": {o.ns}, "Labels": {"app=firewall"}}
	all := o.ask("the objects of a region", http.StatusOK, "GET /v1/query?"+query.Encode(), nil)
	o.keys("without a request", all.body, "resourceCount", "resourcesStatus")
	for _, request := range []string{"/status", "/query?ApiVersion=v1&Kind=Pod"} {
		o.told("what is not there", http.StatusInternalServerError, "GET /v1/instance/none"+request, nil, noDocuments)
	}
}
