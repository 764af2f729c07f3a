package cli

import (
	"strings"
	"testing"
)

const (
	vnfStart = `{"id":"01a2-77","vnfInstanceName":"fw-1","vnfdId":"b1bb-1177","vnfProvider":"Example","vnfProductName":"Firewall","vnfSoftwareVersion":"1.0","vnfdVersion":"1.1",`
	vnfJSON  = vnfStart + `"instantiationState":"NOT_INSTANTIATED","_links":{"self":{"href":"http://x/vnflcm/v2/vnf_instances/01a2-77"}}}`
	vnfRuns  = vnfStart + `"instantiationState":"INSTANTIATED","metadata":{"site":"east"},"vimConnectionInfo":{"vim1":{"vimId":"5056-bdf4","vimType":"ETSINFV.KUBERNETES.V_1"}},` +
		`"instantiatedVnfInfo":{"flavourId":"simple","vnfState":"STARTED","scaleStatus":[{"aspectId":"front","scaleLevel":1}],"maxScaleLevels":[{"aspectId":"front","scaleLevel":2}],` +
		`"vnfcResourceInfo":[{"id":"web-5d5f-abcde","vduId":"VDU1","computeResource":{"resourceId":"web-5d5f-abcde","vimLevelResourceType":"Deployment"}}],` +
		`"vnfcInfo":[{"id":"VDU1-web-5d5f-abcde","vduId":"VDU1","vnfcResourceInfoId":"web-5d5f-abcde","vnfcState":"STARTED"}],"metadata":{"namespace":"fw"}},` +
		`"_links":{"self":{"href":"http://x/vnflcm/v2/vnf_instances/01a2-77"}}}`

	occurrenceStart = `{"id":"01a2-0c","stateEnteredTime":"2026-11-20T09:20:00.000Z","startTime":"2026-11-20T09:10:00.000Z","vnfInstanceId":"01a2-77","operation":"INSTANTIATE","isAutomaticInvocation":false,"isCancelPending":false,`
	occurrenceLinks = `"_links":{"self":{"href":"http://x/vnflcm/v2/vnf_lcm_op_occs/01a2-0c"},"vnfInstance":{"href":"http://x/vnflcm/v2/vnf_instances/01a2-77"}`
	occurrenceDone  = occurrenceStart + `"operationState":"COMPLETED","grantId":"g1","resourceChanges":{"affectedVnfcs":[{"id":"web-5d5f-abcde","vduId":"VDU1","changeType":"ADDED",` +
		`"computeResource":{"resourceId":"web-5d5f-abcde","vimLevelResourceType":"Deployment"}}]},` + occurrenceLinks + `}}`
	occurrenceBegun  = occurrenceStart + `"operationState":"STARTING",` + occurrenceLinks + `}}`
	occurrenceRuns   = occurrenceStart + `"operationState":"PROCESSING",` + occurrenceLinks + `}}`
	occurrenceFailed = occurrenceStart + `"operationState":"FAILED_TEMP","error":{"status":504,"title":"Gateway Timeout","detail":"Deployment fw/web is not ready"},` + occurrenceLinks +
		`,"rollback":{"href":"http://x/vnflcm/v2/vnf_lcm_op_occs/01a2-0c/rollback"}}}`
	occurrenceUndone = occurrenceStart + `"operationState":"ROLLED_BACK","error":{"status":403,"title":"Forbidden","detail":"cannot get a grant: the NFVO responds with 403: no room"},` + occurrenceLinks + `}}`
	occurrenceGiven  = occurrenceStart + `"operationState":"FAILED",` + occurrenceLinks + `}}`

	getVNF        = "GET /vnflcm/v2/vnf_instances/01a2-77"
	postVNF       = "POST /vnflcm/v2/vnf_instances/01a2-77/"
	getOccurrence = "GET /vnflcm/v2/vnf_lcm_op_occs/01a2-0c"
	onOccurrence  = "POST /vnflcm/v2/vnf_lcm_op_occs/01a2-0c/"
	listVNFs      = "GET /vnflcm/v2/vnf_instances"
)

// begun is the answer to a request that starts an occurrence.
func begun() reply { return reply{status: 202, location: "http://x/vnflcm/v2/vnf_lcm_op_occs/01a2-0c"} }

// states is an occurrence that is in one state after another.
func states(documents ...string) reply {
	out := reply{body: documents[0]}
	if len(documents) > 1 {
		next := states(documents[1:]...)
		out.then = &next
	}
	return out
}

// onVNF is a server that has the VNF, and lets a request on it succeed.
func onVNF(request string) replies {
	return replies{getVNF: {body: vnfRuns}, request: begun(), getOccurrence: states(occurrenceDone)}
}

func TestVNF(t *testing.T) {
	named := listVNFs + "?filter=%28eq%2CvnfInstanceName%2C%27fw-1%27%29"
	play(t, map[string]commandCase{
		"vnf-list": {reason: "one line each", args: []string{"vnf", "list", "-o", "wide"}, replies: one("/vnflcm/v2/vnf_instances", "["+vnfJSON+"]")},
		"vnf-list-filters": {
			reason: "flags are a filter of SOL003", args: []string{"vnf", "list", "--state", "INSTANTIATED", "--name", "o'clock"},
			replies: replies{listVNFs + "?filter=%28eq%2CvnfInstanceName%2C%27o%27%27clock%27%29%3B%28eq%2CinstantiationState%2C%27INSTANTIATED%27%29": {body: "[]"}},
		},
		"vnf-list-json": {reason: "the list is as the server sent it", args: []string{"vnf", "list", "-o", "json"}, replies: one("/vnflcm/v2/vnf_instances", "["+vnfJSON+"]")},
		"vnf-show":      {reason: "with its components", args: []string{"vnf", "show", "01a2-77"}, replies: replies{getVNF: {body: vnfRuns}}},
		"vnf-show-name": {reason: "a name stands for an id", args: []string{"vnf", "get", "fw-1"}, replies: replies{named: {body: "[" + vnfJSON + "]"}, getVNF: {body: vnfJSON}}},
		"vnf-show-two":  {reason: "unless two VNFs have it", args: []string{"vnf", "show", "fw-1"}, replies: replies{named: {body: "[" + vnfJSON + "," + vnfJSON + "]"}}},
		"vnf-show-none": {reason: "there is none", args: []string{"vnf", "show", "fw-1"}, replies: replies{named: {body: "[]"}}},
		"vnf-create": {
			reason: "a VNF is created", args: []string{"vnf", "create", "b1bb-1177", "--name", "fw-1", "--description", "edge", "--project", "p", "--metadata", "site=east"},
			replies: replies{"POST /vnflcm/v2/vnf_instances?project=p": {status: 201, body: vnfJSON}},
		},
		"vnf-delete": {
			reason: "each is deleted", args: []string{"vnf", "delete", "01a2-77", "gone"},
			replies: replies{getVNF: {body: vnfJSON}, "DELETE /vnflcm/v2/vnf_instances/01a2-77": {status: 204}, listVNFs + "?filter=%28eq%2CvnfInstanceName%2C%27gone%27%29": {body: "[]"}},
		},
		"vnf-instantiate": {
			reason: "the occurrence is waited for", args: []string{"vnf", "instantiate", "01a2-77", "--flavor", "simple", "--level", "small", "--region", "edge-1", "-n", "fw", "--set", "replicas=2"},
			replies: replies{getVNF: {body: vnfJSON}, postVNF + "instantiate": begun(), getOccurrence: states(occurrenceBegun, occurrenceRuns, occurrenceRuns, occurrenceDone)},
		},
		"vnf-instantiate-file": {
			reason: "flags replace fields of the file", args: []string{"vnf", "instantiate", "01a2-77", "-f", "-", "-n", "fw", "--no-wait"},
			console: console{stdin: "flavourId: simple\nadditionalParams: {namespace: other, lcm-kubernetes-def-files: [a.yaml]}\n"},
			replies: replies{getVNF: {body: vnfJSON}, postVNF + "instantiate": begun(), getOccurrence: states(occurrenceBegun)},
		},
		"vnf-instantiate-failed": {
			reason: "a failure can be repaired", args: []string{"vnf", "instantiate", "01a2-77", "--flavor", "simple"},
			replies: replies{getVNF: {body: vnfJSON}, postVNF + "instantiate": begun(), getOccurrence: states(occurrenceRuns, occurrenceFailed)},
		},
		"vnf-instantiate-refused": {
			reason: "the NFVO's reason is shown", args: []string{"vnf", "instantiate", "01a2-77", "--flavor", "simple"},
			replies: replies{getVNF: {body: vnfJSON}, postVNF + "instantiate": begun(), getOccurrence: states(occurrenceUndone)},
		},
		"vnf-instantiate-timeout": {
			reason: "the wait has a limit", args: []string{"vnf", "instantiate", "01a2-77", "--flavor", "simple", "--timeout", "1ns"},
			replies: replies{getVNF: {body: vnfJSON}, postVNF + "instantiate": begun(), getOccurrence: states(occurrenceRuns)},
		},
		"vnf-instantiate-set": {reason: "a parameter has a name", args: []string{"vnf", "instantiate", "01a2-77", "--set", "a[0]=1"}},
		"vnf-busy": {
			reason: "another occurrence runs", args: []string{"vnf", "heal", "01a2-77"},
			replies: replies{getVNF: {body: vnfRuns}, postVNF + "heal": problemReply(409, `{"title":"Conflict","status":409,"detail":"another occurrence of the VNF is running","kind":"busy"}`)},
		},
		"vnf-scale":        {reason: "by steps", args: []string{"vnf", "scale", "01a2-77", "--aspect", "front", "--in", "--steps", "2"}, replies: onVNF(postVNF + "scale")},
		"vnf-scale-steps":  {reason: "a step is one", args: []string{"vnf", "scale", "01a2-77", "--aspect", "front", "--steps", "0"}},
		"vnf-scale-aspect": {reason: "an aspect is required", args: []string{"vnf", "scale", "01a2-77"}},
		"vnf-heal":         {reason: "some components", args: []string{"vnf", "heal", "01a2-77", "--vnfc", "VDU1-a", "--vnfc", "VDU1-b", "--cause", "crash"}, replies: onVNF(postVNF + "heal")},
		"vnf-update": {
			reason: "a merge patch", args: []string{"vnf", "update", "01a2-77", "--name", "fw-2", "--metadata", "site=west", "--metadata", "old-"},
			replies: onVNF("PATCH /vnflcm/v2/vnf_instances/01a2-77"),
		},
		"vnf-connect": {
			reason: "as the file says", args: []string{"vnf", "connect", "01a2-77", "-f", "-"},
			console: console{stdin: "extVirtualLinks: [{id: l, resourceId: oam, extCps: [{cpdId: CP1, cpConfig: {a: {}}}]}]\n"}, replies: onVNF(postVNF + "change_ext_conn"),
		},
		"vnf-connect-file":   {reason: "a file is required", args: []string{"vnf", "connect", "01a2-77"}},
		"vnf-change-package": {reason: "by the id of its VNFD", args: []string{"vnf", "change-package", "01a2-77", "b1bb-1178", "--set", "upgrade_type=RollingUpdate"}, replies: onVNF(postVNF + "change_vnfpkg")},
		"vnf-terminate":      {reason: "pods get time to end", args: []string{"vnf", "terminate", "01a2-77", "--grace", "30s"}, replies: onVNF(postVNF + "terminate")},
		"vnf-terminate-now":  {reason: "or none", args: []string{"vnf", "terminate", "01a2-77", "--forceful"}, replies: onVNF(postVNF + "terminate")},
		"vnf-terminate-part": {reason: "seconds are whole", args: []string{"vnf", "terminate", "01a2-77", "--grace", "1500ms"}},
	})
}

func TestOccurrence(t *testing.T) {
	all := strings.Join([]string{occurrenceDone, strings.Replace(occurrenceFailed, "01a2-0c", "01a2-0d", 1)}, ",")
	play(t, map[string]commandCase{
		"occurrence-list": {reason: "newest first", args: []string{"occurrence", "list", "-o", "wide"}, replies: one("/vnflcm/v2/vnf_lcm_op_occs", "["+all+"]")},
		"occurrence-list-filters": {
			reason: "of a VNF", args: []string{"occurrence", "list", "--vnf", "01a2-77", "--state", "FAILED_TEMP"},
			replies: replies{getVNF: {body: vnfJSON}, "GET /vnflcm/v2/vnf_lcm_op_occs?filter=%28eq%2CvnfInstanceId%2C%2701a2-77%27%29%3B%28eq%2CoperationState%2C%27FAILED_TEMP%27%29": {body: "[]"}},
		},
		"occurrence-show":          {reason: "with its changes", args: []string{"occurrence", "show", "01a2-0c"}, replies: replies{getOccurrence: {body: occurrenceDone}}},
		"occurrence-show-failed":   {reason: "with its failure", args: []string{"occurrence", "show", "01a2-0c"}, replies: replies{getOccurrence: {body: occurrenceFailed}}},
		"occurrence-wait":          {reason: "until it ends", args: []string{"occurrence", "wait", "01a2-0c"}, replies: replies{getOccurrence: states(occurrenceRuns, occurrenceDone)}},
		"occurrence-retry":         {reason: "until it is completed", args: []string{"occurrence", "retry", "01a2-0c"}, replies: replies{onOccurrence + "retry": {status: 202}, getOccurrence: states(occurrenceRuns, occurrenceDone)}},
		"occurrence-retry-no-wait": {reason: "or not at all", args: []string{"occurrence", "retry", "01a2-0c", "--no-wait"}, replies: replies{onOccurrence + "retry": {status: 202}, getOccurrence: states(occurrenceRuns)}},
		"occurrence-rollback":      {reason: "until it is rolled back", args: []string{"occurrence", "rollback", "01a2-0c", "-o", "json"}, replies: replies{onOccurrence + "rollback": {status: 202}, getOccurrence: states(occurrenceUndone)}},
		"occurrence-fail":          {reason: "it is given up", args: []string{"occurrence", "fail", "01a2-0c"}, replies: replies{onOccurrence + "fail": {body: occurrenceGiven}}},
		"occurrence-cancel":        {reason: "at once", args: []string{"occurrence", "cancel", "01a2-0c", "--forceful"}, replies: replies{onOccurrence + "cancel": {status: 202}}},
		"occurrence-cancel-ended": {
			reason: "one that has ended cannot be cancelled", args: []string{"occurrence", "cancel", "01a2-0c"},
			replies: replies{onOccurrence + "cancel": problemReply(409, `{"title":"Conflict","status":409,"detail":"the occurrence is COMPLETED","kind":"conflict"}`)},
		},
	})
}
