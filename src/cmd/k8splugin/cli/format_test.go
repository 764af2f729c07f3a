package cli

import "testing"

// otherJSON is an instance without labels, which is listed after instanceJSON by id
// and before it by name.
const otherJSON = `{"vnf_id":"m1","vnf_instance_name":"dns","cloud_region_id":"west","namespace":"core","project":"default","csar_id":"dns","revision":12,` +
	`"state":"ready","health":"unhealthy","objects":[],"created_at":"2026-11-19T09:02:00Z","updated_at":"2026-11-19T09:02:04Z"}`

func TestFormats(t *testing.T) {
	two := one("/v1/vnf_instances", `{"vnf_instances":[`+instanceJSON+`,`+otherJSON+`]}`)
	list := func(args ...string) []string { return append([]string{"instance", "list"}, args...) }
	play(t, map[string]commandCase{
		"format-name":            {reason: "the ids, one a line, for other commands", args: list("-o", "name"), replies: two},
		"format-name-changed":    {reason: "an object that a command has changed", args: []string{"region", "update", "east", "--description", "x", "-o", "name"}, replies: replies{"PATCH /v1/cloud_regions/east": {body: regionJSON}}},
		"format-name-show":       {reason: "what is no object has no name", args: []string{"instance", "tree", "k3x9vq2m", "-o", "name"}, replies: one("/v1/vnf_instances/k3x9vq2m?pods=true", instanceJSON)},
		"format-jsonpath":        {reason: "a template over the response", args: list("-o", "jsonpath={range .vnf_instances[*]}{.vnf_id}={.revision}{\"\\n\"}{end}"), replies: two},
		"format-jsonpath-plain":  {reason: "a path needs no braces", args: []string{"instance", "show", "k3x9vq2m", "-o", "jsonpath=.labels.tenant"}, replies: replies{getIt: {body: instanceJSON}}},
		"format-jsonpath-bad":    {reason: "a wrong path is refused before anything is sent", args: list("-o", "jsonpath={.x")},
		"format-columns":         {reason: "columns of the user's", args: list("-o", "custom-columns=NAME:.vnf_instance_name,TENANT:.labels.tenant,KINDS:.objects[*].kind"), replies: two},
		"format-columns-show":    {reason: "an object is one row", args: []string{"instance", "show", "k3x9vq2m", "-o", "custom-columns=NAME:.vnf_instance_name"}, replies: replies{getIt: {body: instanceJSON}}},
		"format-columns-bad":     {reason: "a column has a head and a path", args: list("-o", "custom-columns=NAME")},
		"list-natural":           {reason: "a complete list of instances is sorted by name", args: list(), replies: two},
		"list-limited":           {reason: "a page keeps the server's order", args: list("--limit", "2"), replies: one("/v1/vnf_instances?limit=2", `{"vnf_instances":[`+instanceJSON+`,`+otherJSON+`],"next":"m1"}`)},
		"list-no-headers":        {reason: "rows only", args: list("--no-headers"), replies: two},
		"list-sort-number":       {reason: "numbers are sorted by value", args: list("--sort-by", ".revision", "-o", "custom-columns=R:.revision"), replies: two},
		"list-sort-missing":      {reason: "items without the field come first", args: list("--sort-by", "{.labels.tenant}", "-o", "name"), replies: two},
		"list-sort-json":         {reason: "the JSON is sorted, too", args: list("--sort-by", "vnf_instance_name", "-o", "json"), replies: two},
		"list-sort-bad":          {reason: "a wrong path", args: list("--sort-by", "{.x"), replies: two},
		"list-namespace-short":   {reason: "kubectl's short flags", args: list("-n", "core", "-A"), replies: one("/v1/vnf_instances?namespace=core", `{"vnf_instances":[`+otherJSON+`]}`)},
		"list-selector":          {reason: "kubectl's selectors", args: list("-l", "tenant in (blue, red),tier!=core", "--selector", "site"), replies: one("/v1/vnf_instances?label=tenant+in+%28blue%2C+red%29%2Ctier%21%3Dcore&label=site", `{"vnf_instances":[`+instanceJSON+`]}`)},
		"list-operations-newest": {reason: "the newest operation comes first", args: []string{"operation", "list"}, replies: one("/v1/operations", `{"operations":[`+op1+`,`+siteOpRunning+`]}`)},
	})
}
