package cli

import "testing"

const (
	deadJSON = `{"notification_id":"5b1c-0000000007","vnf_id":"k3x9vq2m","subscription":"so","created_at":"2026-11-19T08:00:00Z","attempts":20,` +
		`"abandoned_at":"2026-11-20T05:00:00Z","last_status":500,"last_error":"cannot post the letter: connection refused"}`
	resentJSON = `{"notification_id":"5b1c-0000000007","vnf_id":"k3x9vq2m","subscription":"so","created_at":"2026-11-19T08:00:00Z","attempts":0,` +
		`"next_attempt_at":"2026-11-20T09:30:00Z","last_status":503}`
)

func TestNotification(t *testing.T) {
	const resend = "POST /v1/notifications/dead/5b1c-0000000007/resend"
	play(t, map[string]commandCase{
		"notification-list": {
			reason: "what is known of them", args: []string{"notification", "list", "--instance", "k3x9vq2m", "--subscription", "so"},
			replies: one("/v1/notifications/dead?subscription=so&vnf_id=k3x9vq2m", `{"dead_letters":[`+deadJSON+`]}`),
		},
		"notification-resend": {
			reason: "those that cannot be sent do not keep the others", args: []string{"notification", "resend", "none", "5b1c-0000000007", "-o", "wide"},
			replies: replies{resend: {body: resentJSON}},
		},
		"notification-resend-json": {
			reason: "programs get a list", args: []string{"notification", "resend", "5b1c-0000000007", "-o", "json"},
			replies: replies{resend: {body: resentJSON}},
		},
		"notification-delete": {
			reason: "each is forgotten", args: []string{"notification", "delete", "5b1c-0000000007", "5b1c-0000000008"},
			replies: replies{"DELETE /v1/notifications/dead/5b1c-0000000007": {status: 204}, "DELETE /v1/notifications/dead/5b1c-0000000008": {status: 204}},
		},
	})
}

func TestAdopt(t *testing.T) {
	const adopt = "POST /v1/vnf_instances/adopt"
	play(t, map[string]commandCase{
		"instance-adopt": {
			reason: "every option becomes a field",
			args: []string{
				"instance", "adopt", "--region", "east", "--namespace", "edge", "--release", "page", "--package", "web", "--name", "front", "--project", "blue",
				"--description", "was Helm's", "--label", "tenant=blue", "--timeout", "5m", "--on-unreachable", "wait",
			},
			replies: replies{adopt: accepted(), eventsOf: stream(op1, opSucceeded), getIt: {body: instanceJSON}},
		},
		"instance-adopt-dry": {
			reason: "a dry run lists the objects that would be adopted", args: []string{"instance", "adopt", "--region", "east", "--release", "page", "--package", "web", "--dry-run"},
			replies: replies{adopt + "?dry_run=true": {body: adoptedJSON}},
		},
		"instance-adopt-pending": {
			reason: "a release that Helm is changing is Helm's", args: []string{"instance", "adopt", "--region", "east", "--release", "page", "--package", "web"},
			replies: replies{adopt: problemReply(409, `{"status":409,"detail":"cannot adopt release page: revision 2 of it is pending-upgrade","kind":"conflict"}`)},
		},
		"instance-adopt-no-wait":    {reason: "with --no-wait it returns at once", args: []string{"instance", "adopt", "--region", "east", "--release", "page", "--package", "web", "--no-wait"}, replies: replies{adopt: accepted()}},
		"instance-adopt-incomplete": {reason: "it must be said what", args: []string{"instance", "adopt", "--region", "east", "--package", "web"}},
	})
}
