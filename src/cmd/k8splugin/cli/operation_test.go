package cli

import "testing"

func TestOperation(t *testing.T) {
	play(t, map[string]commandCase{
		"operation-list": {
			reason: "a row for each", args: []string{"operation", "list", "--instance", "k3x9vq2m", "-o", "wide"},
			replies: one("/v1/operations?vnf_id=k3x9vq2m", `{"operations":[`+op1+`,`+op3+`,`+opFailed+`]}`),
		},
		"operation-list-subject": {
			reason: "operations of every kind, or of one subject", args: []string{"operation", "list", "--subject", "site/edge-1", "-o", "wide"},
			replies: one("/v1/operations?subject=site%2Fedge-1", `{"operations":[`+siteOpRunning+`,`+siteOpFailed+`]}`),
		},
		"operation-list-both": {reason: "an instance is a subject", args: []string{"operation", "list", "--subject", "site", "--instance", "k3x9vq2m"}},
		"operation-show-site": {
			reason: "what goes with the site is named", args: []string{"operation", "show", "0193-5f0c"}, replies: one("/v1/operations/0193-5f0c", siteOpRemoving),
		},
		"operation-watch-site": {
			reason: "a site's log is shown among the steps", args: []string{"operation", "watch", "0193-5f0c"},
			replies: replies{"GET /v1/operations/0193-5f0c/events": siteStream(siteOpRunning, siteEventsJSON()[2], siteEventsJSON()[4], siteOpFailed)},
		},
		"operation-cancel-site": {
			reason: "a site's operation is cancelled as any other", args: []string{"operation", "cancel", "0193-5f0c"},
			replies: replies{"POST /v1/operations/0193-5f0c/cancel": {status: 202, body: siteOpRunning}},
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
		"operation-show-waiting": {
			reason: "with what it waits for", args: []string{"operation", "show", "0192f3a5c7d1-a7c1"},
			replies: one("/v1/operations/0192f3a5c7d1-a7c1", opWaiting),
		},
		"operation-watch-waiting": {
			reason: "that an operation waits is news", args: []string{"operation", "watch", "0192f3a5c7d1-a7c1"},
			replies: replies{eventsOf: stream(op2, opWaiting, opFailed)},
		},
		"operation-watch-json": {
			reason: "each state is a line for programs, once, and nothing else is said", args: []string{"operation", "watch", "0192f3a5c7d1-a7c1", "-o", "json"},
			console: console{terminal: true},
			replies: replies{eventsOf: stream(op1, op1, op2, opSucceeded)},
		},
		"operation-watch-yaml": {
			reason: "or a document", args: []string{"operation", "watch", "0192f3a5c7d1-a7c1", "-o", "yaml"},
			replies: replies{eventsOf: stream(op1, opFailed)},
		},
		"operation-retry": {
			reason: "the new operation is waited for and shown",
			args:   []string{"operation", "retry", "0191", "--timeout", "30m", "--on-failure", "keep", "--on-unreachable", "wait"},
			replies: replies{
				"POST /v1/operations/0191/retry": {status: 202, location: operation1, body: op1}, eventsOf: stream(op2, op3),
				"GET /v1/operations/0192f3a5c7d1-a7c1": {body: op3},
			},
		},
		"operation-retry-dry": {
			reason: "a dry run shows the changes, and starts nothing", args: []string{"operation", "retry", "0191", "--dry-run", "--on-failure", "undo"},
			replies: replies{"POST /v1/operations/0191/retry?dry_run=true": {body: previewJSON}},
		},
		"operation-undo-dry": {
			reason: "likewise", args: []string{"operation", "undo", "0191", "--dry-run"},
			replies: replies{"POST /v1/operations/0191/undo?dry_run=true": {body: previewJSON}},
		},
		"operation-undo": {
			reason: "with --no-wait it returns at once, and what is deleted is confirmed", args: []string{"operation", "undo", "0191", "--no-wait", "--confirm", "sha256:6b86b2"},
			replies: replies{"POST /v1/operations/0191/undo": {status: 202, location: operation1, body: op1}},
		},
		"operation-undo-fails": {
			reason: "the outcome is the exit code", args: []string{"operation", "undo", "0191", "--wait"},
			replies: replies{"POST /v1/operations/0191/undo": {status: 202, location: operation1, body: op1}, eventsOf: stream(opFailed)},
		},
		"operation-undo-policy": {reason: "an undo is not undone", args: []string{"operation", "undo", "0191", "--on-failure", "undo"}},
		"operation-cancel": {
			reason: "the operation as it is", args: []string{"operation", "cancel", "0192f3a5c7d1-a7c1"},
			replies: replies{"POST /v1/operations/0192f3a5c7d1-a7c1/cancel": {status: 202, body: op3}},
		},
	})
}
