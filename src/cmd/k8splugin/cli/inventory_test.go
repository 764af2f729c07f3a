package cli

import "testing"

const (
	waitingJSON = `{"vnf_id":"k3x9vq2m","state":"waiting","since":"2026-11-20T08:00:00Z","retry_at":"2026-11-20T09:30:00Z",` +
		`"waits_for":["/network/generic-vnfs/generic-vnf/V1"],"objects":["/a/k8s-resources/k8s-resource/1","/a/k8s-resources/k8s-resource/2"]}`
	parkedJSON  = `{"network_id":"east.oam","state":"parked","rejected":[{"path":"/network/l3-networks/l3-network/east.oam","reason":"it belongs to MSO"}],"objects":[]}`
	flavorsJSON = `{"cloud_region_id":"east","state":"clean","objects":["/r/flavors/flavor/k8s-1"]}`
)

func TestInventory(t *testing.T) {
	const item = "/v1/vnf_instances/k3x9vq2m/aai"
	play(t, map[string]commandCase{
		"inventory-list": {
			reason: "whatever is not equal says why", args: []string{"inventory", "list", "-o", "wide"},
			replies: one("/v1/inventory/aai", `{"listings":[`+waitingJSON+`,`+parkedJSON+`,`+flavorsJSON+`]}`),
		},
		"inventory-list-parked": {
			reason: "an operator looks for what is rejected", args: []string{"inventory", "list", "--state", "parked", "--network", "east.oam"},
			replies: one("/v1/inventory/aai?network_id=east.oam&state=parked", `{"listings":[`+parkedJSON+`]}`),
		},
		"inventory-list-region": {
			reason: "the flavors of a region are a subject", args: []string{"inventory", "list", "--region", "east"},
			replies: one("/v1/inventory/aai?cloud_region_id=east", `{"listings":[`+flavorsJSON+`]}`),
		},
		"inventory-show": {
			reason: "with the paths of the objects", args: []string{"inventory", "show", "k3x9vq2m"}, replies: one(item, waitingJSON),
		},
		"inventory-show-off": {
			reason: "or why there are none", args: []string{"inventory", "show", "k3x9vq2m"},
			replies: one(item, `{"vnf_id":"k3x9vq2m","state":"off","reason":"SO's adapter for CNFs writes its objects","objects":[]}`),
		},
		"inventory-sync": {
			reason: "it shows the state before", args: []string{"inventory", "sync", "k3x9vq2m"}, replies: replies{"POST " + item + "/sync": {status: 202, body: waitingJSON}},
		},
		"instance-create-aai": {
			reason: "what A&AI is to have is part of the request",
			args: []string{
				"instance", "create", "--region", "east", "--package", "web", "--generic-vnf", "V1", "--vf-module", "M1", "--aai-tenant", "t1", "--aai-writer", "service", "--no-wait",
			},
			replies: replies{"POST /v1/vnf_instances": accepted()},
		},
	})
}
