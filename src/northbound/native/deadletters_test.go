package native_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	const dead = `{"notification_id": "5b1c-0000000007", "vnf_id": "fox", "subscription": "so", "created_at": "2026-11-20T12:00:01Z", "attempts": 20,
		"abandoned_at": "2026-11-20T12:00:06Z", "last_status": 500, "last_error": "cannot post the letter: connection refused"}`
	two := func(s *standIn) { s.more = []string{"5b1c-0000000008"} }
	runAll(t, map[string]exchange{
		"List": {reason: "what is known of them, and not what they say", request: "GET /v1/notifications/dead", status: 200, want: `{"dead_letters": [` + dead + `]}`},
		"Pages": {
			reason: "they come in pages", arrange: two, request: "GET /v1/notifications/dead?limit=1", status: 200, want: `{"dead_letters": [` + dead + `], "next": "5b1c-0000000007"}`,
			headers: []string{`Link: </v1/notifications/dead?limit=1&marker=5b1c-0000000007>; rel="next"`},
		},
		"Next":          {reason: "the next page has the rest", arrange: two, request: "GET /v1/notifications/dead?marker=5b1c-0000000007", status: 200, want: `{"dead_letters": [{"notification_id": "5b1c-0000000008", "...": ""}]}`},
		"OfInstance":    {reason: "those of an instance", request: "GET /v1/notifications/dead?vnf_id=fox&subscription=so", status: 200, want: `{"dead_letters": [` + dead + `]}`},
		"OfAnother":     {reason: "of another there are none", request: "GET /v1/notifications/dead?vnf_id=bear", status: 200, want: `{"dead_letters": []}`},
		"OfAnotherName": {reason: "nor of another subscription", request: "GET /v1/notifications/dead?subscription=cds", status: 200, want: `{"dead_letters": []}`},
		"OfRegion": {
			reason: "those that hand the kubeconfig of a region over", arrange: func(s *standIn) { s.deadLetter.Subscription, s.deadLetter.Region = "", "edge-1" },
			request: "GET /v1/notifications/dead?cloud_region_id=edge-1", status: 200,
			want: `{"dead_letters": [{"notification_id": "5b1c-0000000007", "vnf_id": "fox", "cloud_region_id": "edge-1", "...": ""}]}`,
		},
		"OfNoRegion":     {reason: "a notification hands none over", request: "GET /v1/notifications/dead?cloud_region_id=edge-1", status: 200, want: `{"dead_letters": []}`},
		"Misspelt":       {reason: "a filter that is none would select everything", request: "GET /v1/notifications/dead?instance=fox", status: 400, want: problem("invalid")},
		"Broken":         {reason: "they cannot be read", arrange: failing("DeadLetters", errDisk), request: "GET /v1/notifications/dead", status: 500, want: problem("internal")},
		"Resend":         {reason: "it is on its way", request: "POST /v1/notifications/dead/5b1c-0000000007/resend", status: 200, want: `{"notification_id": "5b1c-0000000007", "attempts": 0, "next_attempt_at": "2026-11-20T12:00:09Z", "...": ""}`, asked: "resend 5b1c-0000000007"},
		"ResendMissing":  {reason: "what is not dead is not raised", request: "POST /v1/notifications/dead/none/resend", status: 404, want: problem("not-found")},
		"ResendNot":      {reason: "a caller without the permission is denied", arrange: failing("Resend", nf.E(nf.Forbidden, "change", "VNF instance fox", nil)), request: "POST /v1/notifications/dead/5b1c-0000000007/resend", status: 403, want: problem("forbidden")},
		"Discard":        {reason: "it is forgotten", request: "DELETE /v1/notifications/dead/5b1c-0000000007", status: 204, asked: "discard 5b1c-0000000007"},
		"DiscardMissing": {reason: "once", request: "DELETE /v1/notifications/dead/none", status: 404, want: problem("not-found")},
		"BadID":          {reason: "an id is an id", request: "DELETE /v1/notifications/dead/-", status: 400, want: problem("invalid")},
	})
}
