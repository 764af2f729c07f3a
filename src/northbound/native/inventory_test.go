package native_test

import (
	"context"
	"iter"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
)

var _ native.Inventory = (*standIn)(nil)

// listings returns a listing of an instance that waits, one of a network, one of a
// region, and one of an instance that does not exist.
func listings() []nf.Listing {
	return []nf.Listing{
		{
			Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "fox"}, State: nf.ListingWaiting, Since: noon(1), Retry: noon(2),
			Missing: []string{"/network/generic-vnfs/generic-vnf/V1"}, Objects: []string{"/a/k8s-resources/k8s-resource/1"},
		},
		{
			Subject: nf.Subject{Kind: nf.NetworkSubject, ID: "east.oam"}, State: nf.ListingParked, Since: noon(1),
			Rejected: map[string]string{"/network/l3-networks/l3-network/east.oam": "it belongs to MSO"},
		},
		{Subject: nf.Subject{Kind: nf.RegionSubject, ID: "east"}, State: nf.ListingClean, Objects: []string{"/r/flavors/flavor/k8s-1"}},
		{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "bee"}, State: nf.ListingOrphaned, Reason: "left", Since: noon(1), Objects: []string{"/a/k8s-resources/k8s-resource/7"}},
	}
}

// Listings implements native.Inventory.
func (s *standIn) Listings(context.Context) iter.Seq2[nf.Listing, error] {
	return func(yield func(nf.Listing, error) bool) {
		if err := s.fail["Listings"]; err != nil {
			yield(nf.Listing{}, err)
			return
		}
		for _, l := range listings() {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// Listing implements native.Inventory.
func (s *standIn) Listing(_ context.Context, id string) (nf.Listing, error) {
	if id != "fox" {
		return nf.Listing{}, missing("VNF instance", id)
	}
	return listings()[0], s.fail["Listing"]
}

// Relist implements native.Inventory.
func (s *standIn) Relist(ctx context.Context, id string) (nf.Listing, error) {
	s.ask("relist " + id)
	l, err := s.Listing(ctx, id)
	if err == nil {
		err = s.fail["Relist"]
	}
	return l, err
}

func TestInventory(t *testing.T) {
	t.Parallel()
	const fox = `{"vnf_id": "fox", "state": "waiting", "since": "2026-11-20T12:00:01Z", "retry_at": "2026-11-20T12:00:02Z",
		"waits_for": ["/network/generic-vnfs/generic-vnf/V1"], "objects": ["/a/k8s-resources/k8s-resource/1"]}`
	const oam = `{"network_id": "east.oam", "state": "parked", "since": "2026-11-20T12:00:01Z",
		"rejected": [{"path": "/network/l3-networks/l3-network/east.oam", "reason": "it belongs to MSO"}], "objects": []}`
	const east = `{"cloud_region_id": "east", "state": "clean", "objects": ["/r/flavors/flavor/k8s-1"]}`
	const bee = `{"vnf_id": "bee", "state": "orphaned", "reason": "left", "since": "2026-11-20T12:00:01Z", "objects": ["/a/k8s-resources/k8s-resource/7"]}`
	runAll(t, map[string]exchange{
		"List":       {reason: "instances, then networks, then regions, then orphaned objects", request: "GET /v1/inventory/aai", status: 200, want: `{"listings": [` + fox + `, ` + oam + `, ` + east + `, ` + bee + `]}`},
		"Pages":      {reason: "it has pages", request: "GET /v1/inventory/aai?limit=1", status: 200, want: `{"listings": [` + fox + `], "next": "instances.fox"}`},
		"Next":       {reason: "the next page has the rest", request: "GET /v1/inventory/aai?marker=instances.fox", status: 200, want: `{"listings": [` + oam + `, ` + east + `, ` + bee + `]}`},
		"State":      {reason: "an operator looks for what is rejected", request: "GET /v1/inventory/aai?state=parked", status: 200, want: `{"listings": [` + oam + `]}`},
		"OfInstance": {reason: "that of an instance", request: "GET /v1/inventory/aai?vnf_id=fox", status: 200, want: `{"listings": [` + fox + `]}`},
		"OfRegion":   {reason: "that of a region", request: "GET /v1/inventory/aai?cloud_region_id=east", status: 200, want: `{"listings": [` + east + `]}`},
		"Last":       {reason: "regions are next", request: "GET /v1/inventory/aai?marker=networks.east.oam", status: 200, want: `{"listings": [` + east + `, ` + bee + `]}`},
		"Orphaned":   {reason: "objects of instances that do not exist", request: "GET /v1/inventory/aai?state=orphaned", status: 200, want: `{"listings": [` + bee + `]}`},
		"AfterLast":  {reason: "they are last", request: "GET /v1/inventory/aai?marker=regions.east", status: 200, want: `{"listings": [` + bee + `]}`},
		"OfNetwork":  {reason: "that of a network", request: "GET /v1/inventory/aai?network_id=east.oam", status: 200, want: `{"listings": [` + oam + `]}`},
		"BadState":   {reason: "a state that does not exist would select nothing", request: "GET /v1/inventory/aai?state=broken", status: 400, want: problem("invalid")},
		"Broken":     {reason: "the records cannot be read", arrange: failing("Listings", errDisk), request: "GET /v1/inventory/aai", status: 500, want: problem("internal")},
		"Get":        {reason: "one instance", request: "GET /v1/vnf_instances/fox/aai", status: 200, want: fox},
		"Missing":    {reason: "an instance that does not exist", request: "GET /v1/vnf_instances/bear/aai", status: 404, want: problem("not-found")},
		"Sync":       {reason: "it is compared soon", request: "POST /v1/vnf_instances/fox/aai/sync", status: 202, want: fox, asked: "relist fox"},
		"Nothing": {
			reason: "there is nothing to compare", arrange: failing("Relist", nf.E(nf.Conflict, "compare with A&AI", "VNF instance fox", nil)),
			request: "POST /v1/vnf_instances/fox/aai/sync", status: 409, want: problem("conflict"),
		},
	})
}
