package cli

import (
	"strings"
	"testing"
)

// TestApplyService declares network services.
func TestApplyService(t *testing.T) {
	const declaration = "kind: service\nservice_id: vpn\ndescription: the edge\nlabels: {site: east}\nnetworks: [{name: lan, driver: multus, spec: {type: bridge}}]\n" +
		"members: [{name: firewall, group: 1, csar_id: firewall, cloud_region_id: edge-1, namespace: ns, networks: [{network: lan}]}]\n"
	there := strings.Replace(serviceReadyJSON, `"project"`, `"description":"the edge","labels":{"site":"east"},"project"`, 1)
	accepted := reply{status: 202, location: "/v1/operations/0193-5f0c", body: serviceCreatingJSON}
	const dry = "PATCH /v1/services/vpn?dry_run=true"
	files := folder(t, map[string]string{
		"service.yaml": declaration, "plain.yaml": "kind: service\nservice_id: vpn\nmembers: [{name: firewall, csar_id: firewall, cloud_region_id: edge-1}]\n",
		"nsd.yaml": "kind: service\nservice_id: vpn\nnsd_file: vpn.nsd\nmembers: [{name: firewall, cloud_region_id: edge-1}]\n", "vpn.nsd": "tosca_definitions_version: a\n",
		"all.yaml": "kind: package\ncsar_id: firewall\npath: firewall\n---\n" + declaration, "firewall/metadata.yaml": "name: firewall\nresources: []\n",
	})
	cases := map[string]commandCase{
		"apply-service-new": {
			reason: "it is created", args: []string{"apply", "-f", "FILES/service.yaml", "--wait"},
			replies: replies{"POST /v1/services": accepted, serviceEvents: siteStream(serviceOpDone)},
		},
		"apply-service-failed": {
			reason: "its failure is the command's", args: []string{"apply", "-f", "FILES/service.yaml", "--wait"},
			replies: replies{"POST /v1/services": accepted, serviceEvents: siteStream(serviceOpFailed)},
		},
		"apply-service-dry": {reason: "a dry run shows the members", args: []string{"apply", "-f", "FILES/service.yaml", "--dry-run"}, replies: replies{"POST /v1/services?dry_run=true": {body: servicePreview}}},
		"apply-service-unchecked": {
			reason: "a member of a package that is not there cannot be checked", args: []string{"apply", "-f", "FILES/all.yaml", "--dry-run"},
		},
		"apply-service-same": {
			reason: "one that is as declared stays", args: []string{"apply", "-f", "FILES/service.yaml"},
			replies: replies{getService: {body: there}, dry: {body: `{"members":[]}`}},
		},
		"apply-service-changed": {
			reason: "a member that differs is changed", args: []string{"apply", "-f", "FILES/service.yaml", "--no-wait", "--on-failure", "keep", "--timeout", "1h"},
			replies: replies{getService: {body: there}, dry: {body: servicePreview}, "PATCH /v1/services/vpn": accepted},
		},
		"apply-service-nsd": {
			reason: "its descriptor is sent", args: []string{"apply", "-f", "FILES/nsd.yaml", "--no-wait"},
			replies: replies{getService: {body: there}, "PATCH /v1/services/vpn": accepted},
		},
		"apply-service-plain": {
			reason: "what is not declared any more is removed", args: []string{"apply", "-f", "FILES/plain.yaml", "--no-wait"},
			replies: replies{getService: {body: there}, "PATCH /v1/services/vpn": accepted},
		},
	}
	for name, tc := range cases {
		for i, arg := range tc.args {
			tc.args[i] = strings.Replace(arg, "FILES", files, 1)
		}
		tc.hidden = files
		cases[name] = tc
	}
	play(t, cases)
}
