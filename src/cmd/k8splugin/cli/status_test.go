package cli

import (
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	const waitingOccurrences = "GET /vnflcm/v2/vnf_lcm_op_occs?filter=%28eq%2CoperationState%2C%27FAILED_TEMP%27%29"
	failed := func(text string) string { return strings.Replace(text, `"state":"active"`, `"state":"failed"`, 1) }
	overdue := opStart + `"state":"running",` + stepsStart + `]}`
	calm := replies{
		"GET /v1/cloud_regions": {body: `{"cloud_regions":[` + regionJSON + `]}`}, "GET /v1/vnf_instances?state=failed": {body: `{"vnf_instances":[]}`},
		"GET /v1/vnf_instances?health=unhealthy": {body: `{"vnf_instances":[]}`}, "GET /v1/operations?state=running": {body: `{"operations":[]}`},
		"GET /v1/sites?state=failed": {body: `{"sites":[]}`}, "GET /v1/notifications/dead": {body: `{"dead_letters":[]}`},
		waitingOccurrences: {body: `[]`}, "GET /v1/networks?state=failed": {body: `{"networks":[]}`}, "GET /v1/volumes?state=failed": {body: `{"volumes":[]}`},
		"GET /v1/services?state=failed": {body: `{"services":[]}`},
	}
	bad := replies{
		"GET /v1/cloud_regions":                  {body: `{"cloud_regions":[` + regionJSON + `,` + strings.ReplaceAll(awayJSON, `"east"`, `"away"`) + `,` + strings.ReplaceAll(expiringJSON, `"east"`, `"old"`) + `]}`},
		"GET /v1/vnf_instances?state=failed":     {body: `{"vnf_instances":[` + brokenJSON + `]}`},
		"GET /v1/vnf_instances?health=unhealthy": {body: `{"vnf_instances":[` + brokenJSON + `,` + otherJSON + `]}`},
		"GET /v1/operations?state=running":       {body: `{"operations":[` + opWaiting + `,` + overdue + `]}`},
		"GET /v1/sites?state=failed":             {status: 403, media: "application/problem+json", body: `{"status":403,"kind":"forbidden","detail":"no"}`},
		waitingOccurrences:                       {body: `[{"id":"o1","operation":"SCALE","vnfInstanceId":"v1","operationState":"FAILED_TEMP"}]`},
		"GET /v1/networks?state=failed":          {body: `{"networks":[` + failed(networkJSON) + `]}`},
		"GET /v1/volumes?state=failed":           {body: `{"volumes":[` + failed(volumeJSON) + `]}`},
		"GET /v1/services?state=failed":          {body: `{"services":[{"service_id":"web","state":"failed","message":"member db failed"}]}`},
		"GET /v1/notifications/dead":             {body: `{"dead_letters":[{"notification_id":"n1","vnf_id":"k3x9vq2m","subscription":"s","attempts":20,"last_status":500}]}`},
	}
	play(t, map[string]commandCase{
		"status-calm":      {reason: "nothing is wrong", args: []string{"status"}, replies: calm},
		"status-calm-json": {reason: "programs get an empty list", args: []string{"status", "-o", "json"}, replies: calm},
		"status-bad":       {reason: "everything that is wrong, and the exit code says so; what is forbidden is omitted", args: []string{"status"}, replies: bad},
		"status-name":      {reason: "the names alone", args: []string{"status", "-o", "custom-columns=N:.name"}, replies: bad},
	})
}

func TestWait(t *testing.T) {
	starting := reply{body: strings.Replace(instanceStart, `"operation_id"`, `"running_operation_id":"0192f3a5c7d1-a7c1","operation_id"`, 1) + `"state":"updating"}`}
	ready, failed, gone := reply{body: instanceJSON}, reply{body: brokenJSON}, problemReply(404, `{"status":404,"detail":"it does not exist","kind":"not-found"}`)
	then := func(first, next reply) reply { first.then = &next; return first }
	list := func(instances string) reply { return reply{body: `{"vnf_instances":[` + instances + `]}`} }
	busy := problemReply(503, `{"status":503,"detail":"the store is away","kind":"unreachable"}`)
	play(t, map[string]commandCase{
		"wait-ready":     {reason: "ready and healthy is the default", args: []string{"instance", "wait", "k3x9vq2m"}, replies: replies{getIt: then(starting, then(starting, ready))}},
		"wait-failed":    {reason: "an instance that has failed will not be ready", args: []string{"instance", "wait", "k3x9vq2m"}, replies: replies{getIt: then(starting, failed)}},
		"wait-state":     {reason: "any state", args: []string{"instance", "wait", "k3x9vq2m", "--for", "state=failed"}, replies: replies{getIt: then(starting, failed)}},
		"wait-deleted":   {reason: "until it is gone", args: []string{"instance", "wait", "k3x9vq2m", "--for", "deleted"}, replies: replies{getIt: then(ready, then(ready, gone))}},
		"wait-gone":      {reason: "it may be gone already", args: []string{"instance", "wait", "fw-1", "--for", "deleted"}, replies: replies{"GET /v1/vnf_instances?vnf_instance_name=fw-1": list("")}},
		"wait-vanished":  {reason: "what is deleted is never ready", args: []string{"instance", "wait", "k3x9vq2m"}, replies: replies{getIt: then(starting, gone)}},
		"wait-timeout":   {reason: "the time limit has its exit code", args: []string{"instance", "wait", "k3x9vq2m", "--timeout", "1ns", "--for", "state=ready"}, replies: replies{getIt: starting}},
		"wait-condition": {reason: "a wrong condition", args: []string{"instance", "wait", "k3x9vq2m", "--for", "happy"}},
		"list-watch": {
			reason: "after the list, rows that are new, have changed or are gone", args: []string{"instance", "list", "-w"},
			replies: replies{"GET /v1/vnf_instances": then(list(instanceJSON), then(list(instanceJSON), then(list(brokenJSON+`,`+otherJSON), then(list(otherJSON), busy))))},
		},
	})
}
