package main

import (
	"net/http"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/simulator/so"
)

// TestHandOver has SO's adapter subscribe to a stack whose objects the service has
// written to A&AI.
func TestHandOver(t *testing.T) {
	t.Parallel()
	o := newOrchestra(t, "so-handover", "k8s-resource,vserver")
	o.so = o.drive(so.Server{URL: o.url}) // swagger.yaml has paths without the broker's prefix
	if err := o.so.Plan(t.Context(), o.vnf); err != nil {
		t.Fatal(err)
	}
	made, err := o.so.CreateStack(t.Context(), o.vnf)
	if err != nil {
		t.Fatal(err)
	}
	if made.Listed, err = o.so.UpdateInventory(t.Context(), o.vnf, made); err != nil {
		t.Fatal(err)
	}
	native, subscriptions := "/v1/vnf_instances/"+made.ID, "/v1/instance/"+made.ID+"/status/subscription"
	writer := func() any {
		t.Helper()
		return o.want(http.StatusOK, o.do("GET", native, nil)).field(t, "aai").(map[string]any)["writer"]
	}
	subscribe := func(name, callback string, want int) {
		t.Helper()
		o.want(want, o.do("POST", subscriptions, map[string]any{"name": name, "callback-url": callback, "metadata": map[string]any{}}))
	}
	subscribe("other", "http://127.0.0.1:1/", http.StatusCreated)
	subscribe(made.ID+"-cnf-adapter", "file:///", http.StatusBadRequest)
	if got := writer(); got != "service" {
		t.Errorf("only a subscription of the adapter changes the writer, to %v", got)
	}
	subscribe(made.ID+"-cnf-adapter", "http://127.0.0.1:1/", http.StatusCreated)
	tenant := "/cloud-infrastructure/cloud-regions/cloud-region/acme/so-handover/tenants/tenant/edge-1"
	for path, element := range map[string]string{"/k8s-resources": "k8s-resource", "/vservers": "vserver"} {
		if left := o.aai.list(tenant+path, element, "data-owner"); len(left) > 0 {
			t.Errorf("the service must stop before it responds; A&AI still has %d objects of type %s", len(left), element)
		}
	}
	if got := writer(); got != "adapter" {
		t.Errorf("the writer is %v", got)
	}
	o.want(http.StatusOK, o.do("PATCH", native, map[string]any{"aai": map[string]any{"writer": "service"}}))
	if listing := o.want(http.StatusOK, o.do("GET", native+"/aai", nil)); listing.text(t, "state") != "off" || writer() != "adapter" {
		t.Errorf("a later revision brings the service back: %v", listing)
	}
	if err := o.so.DeleteStack(t.Context(), o.vnf, made); err != nil {
		t.Fatal(err)
	}
}
