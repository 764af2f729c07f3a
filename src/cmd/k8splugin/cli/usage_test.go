package cli

import "testing"

func TestUsage(t *testing.T) {
	play(t, map[string]commandCase{
		"no-such-verb":     {reason: "a wrong verb is an error of usage", args: []string{"region", "lst"}},
		"no-such-flag":     {reason: "a wrong flag is an error of usage", args: []string{"region", "list", "--colour"}},
		"no-such-format":   {reason: "a wrong format is an error of usage", args: []string{"region", "list", "-o", "xml"}},
		"too-few":          {reason: "a missing name is an error of usage", args: []string{"region", "show"}},
		"not-a-name":       {reason: "what would name another path is refused", args: []string{"package", "delete", ".."}},
		"bad-server":       {reason: "a server is a URL", args: []string{"region", "list", "--server", "ftp://nowhere"}},
		"exit-codes":       {reason: "the help topic", args: []string{"help", "exit-codes"}},
		"complete-regions": {reason: "ids are completed by asking the server", args: []string{"__complete", "region", "show", ""}, replies: one("/v1/cloud_regions", `{"cloud_regions":[`+regionJSON+`]}`)},
		"complete-instances": {
			reason: "instances are completed by name and id", args: []string{"__complete", "instance", "delete", "x", ""},
			replies: one("/v1/vnf_instances", `{"vnf_instances":[`+instanceJSON+`]}`),
		},
		"complete-operations": {
			reason: "an operation of any subject can be shown", args: []string{"__complete", "operation", "show", ""},
			replies: one("/v1/operations", `{"operations":[`+op1+`,`+siteOpRunning+`]}`),
		},
		"complete-retry": {
			reason: "only an operation of an instance can be retried", args: []string{"__complete", "operation", "retry", ""},
			replies: one("/v1/operations?subject=vnf_instance", `{"operations":[`+op1+`]}`),
		},
		"complete-undo": {
			reason: "only an operation of an instance can be undone", args: []string{"__complete", "operation", "undo", ""},
			replies: one("/v1/operations?subject=vnf_instance", `{"operations":[`+op1+`]}`),
		},
		"complete-flag":    {reason: "so are flags", args: []string{"__complete", "instance", "create", "--package", ""}, replies: one("/v1/packages", `{"packages":[`+packageJSON+`]}`)},
		"complete-output":  {reason: "and formats", args: []string{"__complete", "region", "list", "-o", ""}},
		"complete-nothing": {reason: "a server that does not answer completes nothing", args: []string{"__complete", "region", "show", ""}},
		"not-our-server": {
			reason: "what is not this service says so", args: []string{"region", "list"},
			replies: replies{"GET /v1/cloud_regions": {status: 502, media: "text/html", body: "<html>"}},
		},
		"not-json": {
			reason: "so does an answer that cannot be read", args: []string{"region", "list"},
			replies: replies{"GET /v1/cloud_regions": {media: "text/html", body: "<html>"}},
		},
	})
}
