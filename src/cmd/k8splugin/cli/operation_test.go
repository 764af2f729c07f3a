package cli

import "testing"

func TestOperation(t *testing.T) {
	play(t, map[string]scene{
		"operation-list": {
			reason: "a row for each", args: []string{"operation", "list", "--instance", "k3x9vq2m", "-o", "wide"},
			replies: one("/v1/operations?vnf_id=k3x9vq2m", `{"operations":[`+op1+`,`+op3+`,`+opFailed+`]}`),
		},
		"operation-show": {
			reason: "with steps and changes", args: []string{"operation", "show", "0192f3a5c7d1-a7c1"},
			replies: one("/v1/operations/0192f3a5c7d1-a7c1", opSucceeded),
		},
		"operation-show-failed": {
			reason: "with what went wrong", args: []string{"operation", "show", "0192f3a5c7d1-a7c1"},
			replies: one("/v1/operations/0192f3a5c7d1-a7c1", opFailed),
		},
		"operation-watch-terminal": {
			reason: "on a terminal the lines are drawn over", args: []string{"operation", "watch", "0192f3a5c7d1-a7c1"},
			console: console{terminal: true},
			replies: replies{eventsOf: stream(op1, op2, op3, opSucceeded)},
		},
		"operation-watch-missing": {
			reason: "an operation that is not there is asked for once", args: []string{"operation", "watch", "0192"},
		},
		"operation-watch-cut": {
			reason:  "a stream that breaks is opened again, and not for ever",
			args:    []string{"operation", "watch", "0192f3a5c7d1-a7c1"},
			replies: replies{eventsOf: {media: "text/event-stream", body: "event: other\ndata: {}\n\n"}},
		},
		"operation-cancel": {
			reason: "the operation as it is", args: []string{"operation", "cancel", "0192f3a5c7d1-a7c1"},
			replies: replies{"POST /v1/operations/0192f3a5c7d1-a7c1/cancel": {status: 202, body: op3}},
		},
	})
}
