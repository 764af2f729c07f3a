package cli

import "testing"

const (
	serviceStart = `{"service_id":"vpn","project":"default","networks":[{"name":"lan","driver":"multus","spec":{"type":"bridge"}}],"members":[` +
		`{"name":"firewall","group":1,"vnf_id":"vpn.firewall","csar_id":"firewall","cloud_region_id":"edge-1","namespace":"ns","link":"/v1/vnf_instances/vpn.firewall"},` +
		`{"name":"generator","group":2,"vnf_id":"vpn.generator","csar_id":"generator","cloud_region_id":"edge-2","link":"/v1/vnf_instances/vpn.generator"}],` +
		`"operation_id":"0193-5f0c","links":{"self":"/v1/services/vpn"},"created_at":"2026-11-20T09:00:00Z","updated_at":"2026-11-20T09:06:12Z",`
	serviceReadyJSON    = serviceStart + `"state":"ready"}`
	serviceCreatingJSON = serviceStart + `"state":"creating"}`

	serviceOpStart = `{"operation_id":"0193-5f0c","subject":{"kind":"service","id":"vpn"},"service_id":"vpn","project":"default","verb":"create","accepted_at":"2026-11-20T09:00:00Z",` +
		`"started_at":"2026-11-20T09:00:00Z","deadline":"2026-11-20T11:00:00Z","attempts":1,"steps":[{"name":"apply 1/2 firewall","started_at":"2026-11-20T09:00:00Z","finished_at":"2026-11-20T09:00:01Z"}],`
	serviceOpDone   = serviceOpStart + `"state":"succeeded","finished_at":"2026-11-20T09:06:12Z"}`
	serviceOpFailed = serviceOpStart + `"state":"failed","finished_at":"2026-11-20T09:01:00Z","failure":{"kind":"failed","step":"apply 2/2 generator","message":"member generator: a pod crashes"}}`

	getService      = "GET /v1/services/vpn"
	serviceEvents   = "GET /v1/operations/0193-5f0c/events"
	servicePreview  = `{"members":[{"name":"generator","verb":"instantiate","cloud_region_id":"edge-2","changes":[],"warnings":["the region is slow"]}]}`
	serviceYAML     = "service_id: vpn\nmembers: [{name: firewall, csar_id: firewall, cloud_region_id: edge-1}]\n"
	serviceNotFound = `{"title":"Not Found","status":404,"detail":"cannot get network service \"vpn\": not found","kind":"not-found"}`
)

func TestService(t *testing.T) {
	accepted := reply{status: 202, location: "/v1/operations/0193-5f0c", body: serviceCreatingJSON}
	describe, notThere := console{stdin: serviceYAML}, problemReply(404, serviceNotFound)
	play(t, map[string]commandCase{
		"service-create": {
			reason: "the operation is followed to its end", args: []string{"service", "create", "-f", "-", "--timeout", "2h", "--keep-on-failure"}, console: describe,
			replies: replies{"POST /v1/services": accepted, serviceEvents: siteStream(serviceOpDone), getService: {body: serviceReadyJSON}},
		},
		"service-create-failed": {
			reason: "an operation that failed is the command's failure", args: []string{"service", "create", "-f", "-"}, console: describe,
			replies: replies{"POST /v1/services": accepted, serviceEvents: siteStream(serviceOpFailed)},
		},
		"service-create-dry": {
			reason: "a dry run changes nothing", args: []string{"service", "create", "-f", "-", "--dry-run"}, console: describe,
			replies: replies{"POST /v1/services?dry_run=true": {body: servicePreview}},
		},
		"service-create-no-wait": {reason: "it returns at once", args: []string{"service", "create", "-f", "-", "--no-wait"}, console: describe, replies: replies{"POST /v1/services": accepted}},
		"service-create-nsd": {
			reason: "a descriptor is sent as it is", args: []string{"service", "create", "-f", "-", "--nsd", "KUBE/text.yaml", "--no-wait"}, console: describe, replies: replies{"POST /v1/services": accepted},
		},
		"service-create-no-file": {reason: "a service must be described", args: []string{"service", "create"}},
		"service-list": {
			reason: "one line each", args: []string{"service", "list", "--state", "ready", "-o", "wide"}, replies: one("/v1/services?state=ready", `{"services":[`+serviceReadyJSON+`]}`),
		},
		"service-show": {reason: "with its members", args: []string{"service", "show", "vpn", "-o", "wide"}, replies: replies{getService: {body: serviceReadyJSON}}},
		"service-update": {
			reason: "without a file a failed operation is retried", args: []string{"service", "update", "vpn"},
			replies: replies{"PATCH /v1/services/vpn": accepted, serviceEvents: siteStream(serviceOpDone), getService: {body: serviceReadyJSON}},
		},
		"service-undo": {
			reason: "the undo of a creation deletes the service", args: []string{"service", "undo", "vpn"},
			replies: replies{"POST /v1/services/vpn/undo": accepted, serviceEvents: siteStream(serviceOpDone), getService: problemReply(404, serviceNotFound)},
		},
		"service-wait": {
			reason: "until it is ready", args: []string{"service", "wait", "vpn"},
			replies: replies{getService: {body: serviceCreatingJSON, then: &reply{body: serviceReadyJSON}}},
		},
		"service-wait-failed": {
			reason: "one that has failed does not become ready", args: []string{"service", "wait", "vpn"},
			replies: replies{getService: {body: serviceStart + `"state":"failed","message":"member generator: a pod crashes"}`}},
		},
		"service-wait-deleted": {reason: "until it is gone", args: []string{"service", "wait", "vpn", "--for", "deleted"}, replies: replies{getService: {body: serviceReadyJSON, then: &notThere}}},
		"service-wait-state":   {reason: "or in a state", args: []string{"service", "wait", "vpn", "--for", "state=creating"}, replies: replies{getService: {body: serviceCreatingJSON}}},
		"service-wait-wrong":   {reason: "a condition is one of them", args: []string{"service", "wait", "vpn", "--for", "gone"}},
		"service-wait-timeout": {reason: "the wait has a limit", args: []string{"service", "wait", "vpn", "--timeout", "1ns"}},
		"service-delete": {
			reason: "the operation is followed to its end", args: []string{"service", "delete", "vpn"},
			replies: replies{"DELETE /v1/services/vpn": {status: 202, location: "/v1/operations/0193-5f0c", body: serviceOpDone}, serviceEvents: siteStream(serviceOpDone)},
		},
	})
}
