package cli

import "testing"

// TestHabits types what users of kubectl and helm type.
func TestHabits(t *testing.T) {
	running := instanceStart + `"state":"updating","running_operation_id":"0192f3a5c7d1-a7c1"}`
	failed := instanceStart + `"state":"failed"}`
	cancelled := opStart + `"state":"cancelled","steps":[]}`
	cancelIt := "POST /v1/operations/0192f3a5c7d1-a7c1/cancel"
	play(t, map[string]commandCase{
		"habit-get-all":           {reason: "the verb before the noun lists", args: []string{"get", "instances", "-n", "edge"}, replies: one("/v1/vnf_instances?namespace=edge", `{"vnf_instances":[`+instanceJSON+`]}`)},
		"habit-get-one":           {reason: "with a name it shows one", args: []string{"get", "region", "east"}, replies: one("/v1/cloud_regions/east", regionJSON)},
		"habit-get-two":           {reason: "not two", args: []string{"get", "region", "east", "west"}},
		"habit-get-noun":          {reason: "a wrong noun is an error of usage", args: []string{"get", "instnces"}},
		"habit-describe":          {reason: "plurals and aliases", args: []string{"regions", "describe", "east"}, replies: one("/v1/cloud_regions/east", regionJSON)},
		"habit-create-name":       {reason: "the name is an argument", args: []string{"instance", "create", "fw-1", "--region", "east", "--package", "firewall", "-n", "edge", "--no-wait"}, replies: replies{create: accepted()}},
		"habit-create-names":      {reason: "not twice", args: []string{"instance", "create", "fw-1", "--name", "fw-2", "--region", "east", "--package", "firewall"}},
		"habit-rollback-revision": {reason: "the revision is an argument", args: []string{"instance", "rollback", "k3x9vq2m", "1", "--no-wait"}, replies: replies{getIt: {body: instanceJSON}, rollbackIt: accepted()}},
		"habit-rollback-word":     {reason: "the revision is a number", args: []string{"instance", "rollback", "k3x9vq2m", "first"}},
		"habit-rollback-twice":    {reason: "one revision", args: []string{"instance", "rollback", "k3x9vq2m", "1", "--to", "1"}},
		"habit-apply":             {reason: "drift is corrected", args: []string{"instance", "apply", "k3x9vq2m", "--no-wait", "--on-failure", "keep"}, replies: replies{getIt: {body: instanceJSON}, patchIt: accepted()}},
		"habit-scope": {reason: "a region and a namespace tell two of one name apart", args: []string{"instance", "show", "fw-1", "--region", "east", "-n", "edge"}, replies: replies{
			"GET /v1/vnf_instances?cloud_region_id=east&namespace=edge&vnf_instance_name=fw-1": {body: `{"vnf_instances":[` + instanceJSON + `]}`}, getIt: {body: instanceJSON},
		}},
		"habit-get-scope": {reason: "also with the verb first", args: []string{"get", "instance", "fw-1", "--region", "east", "-n", "edge"}, replies: replies{
			"GET /v1/vnf_instances?cloud_region_id=east&namespace=edge&vnf_instance_name=fw-1": {body: `{"vnf_instances":[` + instanceJSON + `]}`}, getIt: {body: instanceJSON},
		}},
		"habit-retry":           {reason: "the last operation of an instance", args: []string{"instance", "retry", "k3x9vq2m", "--no-wait"}, replies: replies{getIt: {body: failed}, "POST /v1/operations/0192f3a5c7d1-a7c1/retry": {status: 202, location: operation1, body: op1}, "GET " + operation1: {body: op1}}},
		"habit-retry-complete":  {reason: "an instance is completed, and not an operation", args: []string{"__complete", "instance", "retry", ""}, replies: one("/v1/vnf_instances", `{"vnf_instances":[`+instanceJSON+`]}`)},
		"habit-undo":            {reason: "the same", args: []string{"instance", "undo", "k3x9vq2m", "--no-wait"}, replies: replies{getIt: {body: failed}, "POST /v1/operations/0192f3a5c7d1-a7c1/undo": {status: 202, location: operation1, body: op1}, "GET " + operation1: {body: op1}}},
		"habit-cancel":          {reason: "the running operation of an instance", args: []string{"instance", "cancel", "k3x9vq2m"}, replies: replies{getIt: {body: running}, cancelIt: {status: 202, body: op3}}},
		"habit-cancel-idle":     {reason: "there is none", args: []string{"instance", "cancel", "k3x9vq2m"}, replies: replies{getIt: {body: instanceJSON}}},
		"habit-cancel-wait":     {reason: "an operation that was cancelled is a success", args: []string{"instance", "cancel", "k3x9vq2m", "--wait"}, replies: replies{getIt: {body: running}, cancelIt: {status: 202, body: op3}, eventsOf: stream(op3, cancelled)}},
		"habit-cancel-late":     {reason: "one that succeeded before is not", args: []string{"instance", "cancel", "k3x9vq2m", "--wait"}, replies: replies{getIt: {body: running}, cancelIt: {status: 202, body: op3}, eventsOf: stream(opSucceeded)}},
		"habit-uninstall":       {reason: "helm's word", args: []string{"instance", "uninstall", "k3x9vq2m"}, replies: replies{getIt: {body: instanceJSON}, deleteIt: {status: 202, location: operation1, body: op1}}},
		"habit-operation-limit": {reason: "the newest ones", args: []string{"operation", "list", "--limit", "1"}, replies: replies{"GET /v1/operations": {body: `{"operations":[` + op1 + `,` + op2 + `]}`}}},
		"habit-operation-pages": {reason: "pages are the server's", args: []string{"operation", "list", "--limit", "1", "-o", "json"}, replies: replies{"GET /v1/operations?limit=1": {body: `{"operations":[` + op1 + `],"next":"x"}`}}},
		"habit-update-dry":      {reason: "a dry run of an update", args: []string{"instance", "update", "k3x9vq2m", "--set", "replicas=3", "--dry-run"}, replies: replies{getIt: {body: instanceJSON}, patchIt + "?dry_run=true": {body: previewJSON}}},
		"habit-apply-dry":       {reason: "and of applying it again", args: []string{"instance", "apply", "k3x9vq2m", "--dry-run"}, replies: replies{getIt: {body: instanceJSON}, patchIt + "?dry_run=true": {body: previewJSON}}},
		"habit-status":          {reason: "Helm's word", args: []string{"instance", "status", "k3x9vq2m"}, replies: replies{getIt: {body: instanceJSON}}},
		"habit-update-strict":   {reason: "parameters must have an effect", args: []string{"instance", "update", "k3x9vq2m", "--set", "replica=3", "--strict", "--no-wait"}, replies: replies{getIt: {body: instanceJSON}, patchIt: accepted()}},
		"habit-operation-list":  {reason: "an instance by name", args: []string{"operation", "list", "--instance", "fw-1"}, replies: replies{"GET /v1/vnf_instances?vnf_instance_name=fw-1": {body: `{"vnf_instances":[` + instanceJSON + `]}`}, "GET /v1/operations?vnf_id=k3x9vq2m": {body: `{"operations":[` + op1 + `]}`}}},
	})
}
