package cli

import "testing"

const (
	networkJSON = `{"network_id":"east.oam","name":"oam","cloud_region_id":"east","project":"blue","driver":"multus","spec":{"type":"macvlan","master":"eth1"},` +
		`"keep":true,"description":"management","state":"active","use_count":2,"users":[{"kind":"holder","id":"ann"},{"kind":"vnf_instance","id":"k3x9vq2m"}],` +
		`"refs":[{"api_version":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","namespace":"k8splugin-networks","name":"oam"}],"operation_id":"0192f3a5c7d1-a7c1",` +
		`"links":{},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:10:00Z"}`
	volumeJSON = `{"volume_id":"east.data","name":"data","cloud_region_id":"east","project":"blue","source":{"nfs":{"server":"10.0.0.5","path":"/export"}},"size":"10Gi",` +
		`"access_modes":["ReadWriteOnce"],"mode":"Filesystem","retention":"retain","keep":false,"description":"subscribers","state":"active","use_count":1,` +
		`"users":[{"kind":"vnf_instance","id":"k3x9vq2m"}],"pv":"k8splugin-data","phase":"Bound","size_actual":"10Gi","claim":{"namespace":"edge","name":"db-data"},` +
		`"refs":[{"api_version":"v1","kind":"PersistentVolume","name":"k8splugin-data"}],"operation_id":"0192f3a5c7d1-a7c1",` +
		`"links":{},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:10:00Z"}`
)

// TestNetwork checks the commands of networks.
func TestNetwork(t *testing.T) {
	const (
		all  = "/v1/networks"
		oam  = all + "/east.oam"
		spec = `{"type":"macvlan","master":"eth1"}`
	)
	play(t, map[string]commandCase{
		"network-create": {
			reason: "every flag becomes a field", args: []string{
				"network", "create", "oam", "--region", "east", "--spec", spec, "--driver", "ovn", "--holder", "ann", "--project", "blue",
				"--keep", "--description", "management", "--label", "site=east",
			},
			replies: replies{"POST " + all: {status: 201, body: networkJSON}},
		},
		"network-create-file": {
			reason: "a file has the spec", args: []string{"network", "create", "oam", "--region", "east", "-f", "KUBE/network.yaml"},
			replies: replies{"POST " + all: {status: 201, body: networkJSON}},
		},
		"network-create-incomplete": {reason: "the region is required", args: []string{"network", "create", "oam", "--spec", spec}},
		"network-create-wrong":      {reason: "the spec is a map", args: []string{"network", "create", "oam", "--region", "east", "--spec", "[]"}},
		"network-list": {
			reason: "filters become parameters", args: []string{"network", "list", "--region", "east", "--driver", "multus", "--state", "active", "--project", "blue", "-o", "wide"},
			replies: one(all+"?cloud_region_id=east&driver=multus&project=blue&state=active", `{"networks":[`+networkJSON+`]}`),
		},
		"network-show": {reason: "with its users", args: []string{"network", "show", "east.oam"}, replies: one(oam, networkJSON)},
		"network-update": {
			reason: "only what is given is sent", args: []string{"network", "update", "east.oam", "--spec", `{"mtu":1400}`, "--keep=false", "--description", "", "--label", "site-"},
			replies: replies{"PATCH " + oam: {body: networkJSON}},
		},
		"network-update-dry": {
			reason: "the differences, the objects, and the workloads that need a restart", args: []string{"network", "update", "east.oam", "--spec", `{"mtu":1400}`, "--dry-run", "--restart"},
			replies: replies{"PATCH " + oam + "?dry_run=true&restart=true": {body: `{"fields":[{"path":"spec.mtu","new":1400}],` +
				`"changes":[{"api_version":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","namespace":"k8splugin-networks","name":"oam","action":"configured"}],` +
				`"users":[{"vnf_id":"k3x9vq2m","workloads":[{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"router","restartable":true},` +
				`{"api_version":"batch/v1","kind":"Job","namespace":"edge","name":"init","restartable":false}]}],"hidden_users":2,"warnings":["Job edge/init cannot be restarted"]}`}},
		},
		"network-update-restart": {
			reason: "the request restarts workloads", args: []string{"network", "update", "east.oam", "--spec", `{"mtu":1400}`, "--restart"},
			replies: replies{"PATCH " + oam + "?restart=true": {body: networkJSON}},
		},
		"network-update-nothing": {reason: "an update of nothing is a mistake", args: []string{"network", "update", "east.oam"}},
		"network-delete": {
			reason: "the last holder deletes it", args: []string{"network", "delete", "east.oam", "--holder", "ann", "--if-unused"},
			replies: replies{"DELETE " + oam + "?holder=ann&if_unused=true": {status: 204}},
		},
		"network-get": {reason: "the verb can be first", args: []string{"get", "network"}, replies: one(all, `{"networks":[`+networkJSON+`]}`)},
	})
}

// TestVolume checks the commands of volumes.
func TestVolume(t *testing.T) {
	const (
		all    = "/v1/volumes"
		data   = all + "/east.data"
		source = `{nfs: {server: 10.0.0.5, path: /export}}`
	)
	play(t, map[string]commandCase{
		"volume-create": {
			reason: "every flag becomes a field", args: []string{
				"volume", "create", "data", "--region", "east", "--size", "10Gi", "--source", source, "--access-modes", "ReadWriteOnce,ReadOnlyMany", "--mode", "Block",
				"--retention", "delete", "--holder", "ann", "--project", "blue", "--keep", "--description", "subscribers", "--label", "site=east",
			},
			replies: replies{"POST " + all: {status: 201, body: volumeJSON}},
		},
		"volume-create-incomplete": {reason: "the region is required", args: []string{"volume", "create", "data", "--source", source}},
		"volume-create-wrong":      {reason: "the source is a map", args: []string{"volume", "create", "data", "--region", "east", "--source", "nfs"}},
		"volume-list": {
			reason: "filters become parameters", args: []string{"volume", "list", "--region", "east", "--state", "active", "--project", "blue", "-o", "wide"},
			replies: one(all+"?cloud_region_id=east&project=blue&state=active", `{"volumes":[`+volumeJSON+`]}`),
		},
		"volume-show": {reason: "with its users, and its state in the region", args: []string{"volume", "show", "east.data"}, replies: one(data, volumeJSON)},
		"volume-update": {
			reason: "only what is given is sent", args: []string{"volume", "update", "east.data", "--size", "20Gi", "--retention", "delete", "--keep", "--description", "", "--label", "site-"},
			replies: replies{"PATCH " + data: {body: volumeJSON}},
		},
		"volume-update-nothing": {reason: "an update of nothing is a mistake", args: []string{"volume", "update", "east.data"}},
		"volume-delete": {
			reason: "the resource remains if it has other holders", args: []string{"volume", "delete", "east.data"},
			replies: replies{"DELETE " + data: {body: volumeJSON}},
		},
		"volume-get": {reason: "the verb can be first", args: []string{"get", "volume", "east.data"}, replies: one(data, volumeJSON)},
	})
}
