package cli

import "testing"

func TestInstance(t *testing.T) {
	play(t, map[string]commandCase{
		"instance-create": {
			reason: "by default it returns when all is applied, and shows no progress",
			args: []string{
				"instance", "create", "--region", "east", "--package", "firewall", "--namespace", "edge", "--name", "fw-1",
				"--set", "replicas=2", "--set-string", "version=3.10", "--values", "-", "--label", "tenant=blue", "--on-failure", "keep", "--timeout", "10m",
			},
			console: console{stdin: "replicas: 1\npassword: x\n"},
			replies: replies{create: accepted(), eventsOf: stream(op1, op2, op3), getIt: {body: instanceJSON}},
		},
		"instance-create-wait": {
			reason:  "with --wait each change of the operation is a line",
			args:    []string{"instance", "create", "--region", "east", "--package", "firewall", "--wait"},
			replies: replies{create: accepted(), eventsOf: stream(op1, op1, op2, op3, opSucceeded), getIt: {body: instanceJSON}},
		},
		"instance-create-wait-json": {
			reason:  "with json standard output holds the instance alone",
			args:    []string{"instance", "create", "--region", "east", "--package", "firewall", "--wait", "-o", "json"},
			replies: replies{create: accepted(), eventsOf: stream(opSucceeded), getIt: {body: `{"vnf_id":"k3x9vq2m"}`}},
		},
		"instance-create-no-wait": {
			reason:  "with --no-wait it returns at once",
			args:    []string{"instance", "create", "--region", "east", "--package", "firewall", "--no-wait"},
			replies: replies{create: accepted()},
		},
		"instance-create-failed": {
			reason:  "an operation that failed is the command's failure, by its kind",
			args:    []string{"instance", "create", "--region", "east", "--package", "firewall", "--wait"},
			replies: replies{create: accepted(), eventsOf: stream(op2, opFailed)},
		},
		"instance-create-dry-run": {
			reason:  "a dry run lists what would be done",
			args:    []string{"instance", "create", "--region", "east", "--package", "firewall", "--dry-run"},
			replies: replies{create + "?dry_run=true": {body: previewJSON}},
		},
		"instance-create-adopt-dry": {
			reason:  "that of an adoption names each object, and its origin",
			args:    []string{"instance", "create", "--region", "east", "--package", "firewall", "--adopt", "--dry-run"},
			replies: replies{create + "?dry_run=true": {body: adoptedJSON}},
		},
		"instance-create-unowned": {
			reason: "a conflict about objects says how they are adopted", args: []string{"instance", "create", "--region", "east", "--package", "firewall"},
			replies: replies{create: problemReply(409, `{"status":409,"detail":"cannot apply objects of others: ConfigMap edge/settings: was made by kubectl","kind":"conflict",`+
				`"errors":[{"object":{"api_version":"v1","kind":"ConfigMap","namespace":"edge","name":"settings"},"message":"was made by kubectl"}]}`)},
		},
		"instance-create-placed": {
			reason: "the server chooses the region",
			args: []string{
				"instance", "create", "fw-1", "--package", "firewall", "--placement-selector", "site in (east, west)", "--placement-region", "east,west",
				"--placement-feature", "cpu-cpuid.AVX512F=true", "--placement-room", "cpu=16", "--placement-pod", "intel.com/sriov=2", "--placement-pods", "3",
				"--placement-api", "kubevirt.io/v1", "--placement-network", "kube-ovn", "--placement-cni", "macvlan", "--placement-prefer", "most-room", "--dry-run",
			},
			replies: replies{create + "?dry_run=true": {body: `{"placement":{"cloud_region_id":"east","prefer":"most-room","candidates":[` +
				`{"cloud_region_id":"east","reason":"chosen","vnf_instances":3},{"cloud_region_id":"west","reason":"room","detail":"2 of 3 pods fit","vnf_instances":1}]},` +
				`"changes":[{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"firewall","action":"created"}],"warnings":[]}`}},
		},
		"instance-create-placed-nowhere": {
			reason: "no region fits, and each says why",
			args:   []string{"instance", "create", "--package", "firewall", "--placement-api", "kubevirt.io"},
			replies: replies{create: problemReply(422, `{"status":422,"detail":"cannot place instance: cloud region east does not fit: api: does not serve kubevirt.io",`+
				`"kind":"unsupported","reason":"no-region","errors":[{"field":"placement","cloud_region_id":"east","reason":"api","message":"cloud region east does not fit: api: does not serve kubevirt.io"}]}`)},
		},
		"instance-create-placed-twice": {
			reason: "the region is named or chosen", args: []string{"instance", "create", "--region", "east", "--package", "firewall", "--placement-pods", "1"},
		},
		"instance-create-incomplete": {
			reason: "region and package are needed", args: []string{"instance", "create", "--region", "east"},
		},
		"instance-create-both": {
			reason: "to wait and not to wait exclude each other",
			args:   []string{"instance", "create", "--region", "east", "--package", "p", "--wait", "--no-wait"},
		},
		"instance-create-bad-policy": {
			reason: "there are two policies", args: []string{"instance", "create", "--region", "east", "--package", "p", "--on-failure", "retry"},
		},
		"instance-list": {
			reason:  "filters become the query; a page that is not the last says so",
			args:    []string{"instance", "list", "--region", "east", "--label", "tenant=blue", "--limit", "1"},
			replies: one("/v1/vnf_instances?cloud_region_id=east&label=tenant%3Dblue&limit=1", `{"vnf_instances":[`+instanceJSON+`],"next":"m1"}`),
		},
		"instance-show": {
			reason: "with parameters and objects", args: []string{"instance", "show", "k3x9vq2m"},
			replies: one("/v1/vnf_instances/k3x9vq2m", brokenJSON),
		},
		"instance-show-name": {
			reason: "a name that one instance has will do for its id",
			args:   []string{"instance", "show", "fw-1", "-o", "json"},
			replies: replies{
				"GET /v1/vnf_instances?vnf_instance_name=fw-1": {body: `{"vnf_instances":[{"vnf_id":"k3x9vq2m"}]}`},
				getIt: {body: `{"vnf_id":"k3x9vq2m","state":"ready"}`},
			},
		},
		"instance-show-ambiguous": {
			reason: "a name that several have will not",
			args:   []string{"instance", "show", "fw-1"},
			replies: one("/v1/vnf_instances?vnf_instance_name=fw-1", `{"vnf_instances":[{"vnf_id":"a","cloud_region_id":"east","namespace":"n1"},`+
				`{"vnf_id":"b","cloud_region_id":"west","namespace":"n2"}]}`),
		},
		"instance-show-missing": {
			reason: "neither an id nor a name", args: []string{"instance", "show", "fw-1"},
			replies: one("/v1/vnf_instances?vnf_instance_name=fw-1", `{"vnf_instances":[]}`),
		},
		"instance-tree": {
			reason: "plain signs when not on a terminal", args: []string{"instance", "tree", "k3x9vq2m"},
			replies: one("/v1/vnf_instances/k3x9vq2m?pods=true", withPods(brokenJSON)),
		},
		"instance-tree-terminal": {
			reason: "symbols and colours on one", args: []string{"instance", "tree", "k3x9vq2m"}, console: console{terminal: true},
			replies: one("/v1/vnf_instances/k3x9vq2m?pods=true", withPods(brokenJSON)),
		},
		"instance-tree-no-color": {
			reason: "NO_COLOR leaves the symbols", args: []string{"instance", "tree", "k3x9vq2m"},
			console: console{terminal: true, env: map[string]string{"NO_COLOR": "1"}},
			replies: one("/v1/vnf_instances/k3x9vq2m?pods=true", withPods(brokenJSON)),
		},
		"instance-update": {
			reason: "a merge patch of what was named",
			args: []string{
				"instance", "update", "k3x9vq2m", "--package", "firewall2", "--set", "replicas=3", "--unset", "debug",
				"--label", "tier=gold", "--label", "old-", "--wait",
			},
			replies: replies{getIt: {body: instanceJSON}, patchIt: accepted(), eventsOf: stream(opSucceeded)},
		},
		"instance-update-busy": {
			reason: "another operation is in the way, and is named",
			args:   []string{"instance", "update", "k3x9vq2m", "--set", "replicas=3"},
			replies: replies{getIt: {body: instanceJSON}, patchIt: problemReply(409,
				`{"status":409,"detail":"cannot upgrade VNF instance k3x9vq2m: operation 0192 is running on it","kind":"busy","operation":"0192"}`)},
		},
		"instance-update-nothing": {
			reason: "an update of nothing is a mistake", args: []string{"instance", "update", "k3x9vq2m"},
			replies: replies{getIt: {body: instanceJSON}},
		},
		"instance-update-braked": {
			reason:  "what would be deleted is listed, and how to confirm it",
			args:    []string{"instance", "update", "k3x9vq2m", "--package", "light"},
			replies: replies{getIt: {body: instanceJSON}, patchIt: problemReply(409, braked)},
		},
		"instance-update-yes": {
			reason: "--yes confirms whatever is listed", args: []string{"instance", "update", "k3x9vq2m", "--package", "light", "--yes", "--no-wait"},
			replies: replies{getIt: {body: instanceJSON}, patchIt: asksBack()},
		},
		"instance-create-inputs": {
			reason: "placement's answers and addresses come from files",
			args: []string{
				"instance", "create", "--region", "east", "--package", "firewall", "--project", "blue", "--on-unreachable", "wait", "--no-wait",
				"--oof", "KUBE/oof.yaml", "--oof", "KUBE/one.yaml", "--network", "KUBE/network.yaml", "--network", "-",
			},
			console: console{stdin: "wan: {ip_address: 192.0.2.1}"},
			replies: replies{create: accepted()},
		},
		"instance-create-profiles": {
			reason:  "compute profiles are one of placement's answers",
			args:    []string{"instance", "create", "--region", "east", "--package", "firewall", "--no-wait", "--oof", "KUBE/one.yaml", "--compute-profile", "web=large", "--compute-profile", "StatefulSet/db=k8s-0123456789"},
			replies: replies{create: accepted()},
		},
		"instance-create-bad-profile": {
			reason: "a profile is that of a workload", args: []string{"instance", "create", "--region", "east", "--package", "p", "--compute-profile", "large"},
		},
		"instance-update-profiles": {
			reason: "other answers of placement stay", args: []string{"instance", "update", "k3x9vq2m", "--compute-profile", "web=small", "--no-wait"},
			replies: replies{getIt: {body: placedJSON}, patchIt: accepted()},
		},
		"instance-show-profiles": {
			reason: "the compute profiles are shown", args: []string{"instance", "show", "k3x9vq2m"}, replies: replies{getIt: {body: placedJSON}},
		},
		"instance-create-bad-inputs": {
			reason: "a text is no answer", args: []string{"instance", "create", "--region", "east", "--package", "p", "--oof", "KUBE/text.yaml"},
		},
		"instance-create-bad-patience": {
			reason: "there are two ways", args: []string{"instance", "create", "--region", "east", "--package", "p", "--on-unreachable", "hope"},
		},
		"instance-notes": {
			reason: "the text of the chart, which cannot control the terminal", args: []string{"instance", "notes", "k3x9vq2m"},
			replies: replies{getIt: {body: instanceJSON}, "GET /v1/vnf_instances/k3x9vq2m/revisions/1": {body: notesJSON}},
		},
		"instance-notes-none": {
			reason: "a revision without notes is said", args: []string{"instance", "notes", "k3x9vq2m", "2"},
			replies: replies{getIt: {body: instanceJSON}, "GET /v1/vnf_instances/k3x9vq2m/revisions/2": {body: noNotesJSON}},
		},
		"instance-revisions": {
			reason: "what it was, and is", args: []string{"instance", "revisions", "k3x9vq2m", "-o", "wide"},
			replies: replies{getIt: {body: instanceJSON}, "GET /v1/vnf_instances/k3x9vq2m/revisions": {body: revisionsJSON}},
		},
		"instance-rollback": {
			reason:  "without a number it is the one before",
			args:    []string{"instance", "rollback", "k3x9vq2m", "--wait"},
			replies: replies{getIt: {body: instanceJSON}, rollbackIt: accepted(), eventsOf: stream(opSucceeded)},
		},
		"instance-rollback-to": {
			reason: "every option becomes a field",
			args: []string{
				"instance", "rollback", "k3x9vq2m", "--to", "1", "--on-failure", "keep", "--on-unreachable", "wait", "--timeout", "5m", "--confirm", "sha256:6b86b2", "--no-wait",
			},
			replies: replies{getIt: {body: instanceJSON}, rollbackIt: accepted()},
		},
		"instance-rollback-dry-run": {
			reason: "what would be done, and what would confirm it",
			args:   []string{"instance", "rollback", "k3x9vq2m", "--to", "1", "--dry-run"},
			replies: replies{getIt: {body: instanceJSON}, rollbackIt + "?dry_run=true": {
				body: `{"changes":[{"api_version":"v1","kind":"PersistentVolumeClaim","namespace":"edge","name":"data","action":"deleted"},` +
					`{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"fw","action":"recreated"}],"warnings":[],"confirm":"sha256:6b86b2"}`,
			}},
		},
		"instance-scale": {
			reason: "a number of two workloads, waited for", args: []string{"instance", "scale", "k3x9vq2m", "Deployment/fw", "StatefulSet/db", "--replicas", "3", "--wait"},
			replies: replies{getIt: {body: instanceJSON}, scaleIt: accepted(), eventsOf: stream(opSucceeded)},
		},
		"instance-scale-by": {
			reason: "every option becomes a field",
			args: []string{
				"instance", "scale", "k3x9vq2m", "Elasticsearch/logs", "--by", "-1", "--path", "/spec/nodeSets/0/count", "--force", "--on-failure", "keep", "--timeout", "5m", "--no-wait",
			},
			replies: replies{getIt: {body: instanceJSON}, scaleIt: accepted()},
		},
		"instance-scale-dry-run": {
			reason: "what would be done", args: []string{"instance", "scale", "k3x9vq2m", "Deployment/fw", "--replicas", "0", "--dry-run"},
			replies: replies{getIt: {body: instanceJSON}, scaleIt + "?dry_run=true": {
				body: `{"changes":[{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"fw","action":"configured","fields":[{"path":"spec.replicas","old":2,"new":0}]}],"warnings":[]}`,
			}},
		},
		"instance-scale-autoscaled": {
			reason: "an autoscaler is named", args: []string{"instance", "scale", "k3x9vq2m", "Deployment/fw", "--replicas", "3"},
			replies: replies{getIt: {body: instanceJSON}, scaleIt: problemReply(409, `{"title":"Conflict","status":409,"kind":"conflict","detail":"cannot scale workloads: Deployment edge/fw: is scaled by HorizontalPodAutoscaler fw: change that instead",`+
				`"errors":[{"field":"Deployment edge/fw","message":"is scaled by HorizontalPodAutoscaler fw: change that instead"}]}`)},
		},
		"instance-scale-nothing": {reason: "a number is required", args: []string{"instance", "scale", "k3x9vq2m", "Deployment/fw"}},
		"instance-scale-both":    {reason: "one number", args: []string{"instance", "scale", "k3x9vq2m", "Deployment/fw", "--replicas", "0", "--by", "1"}},
		"instance-restart": {
			reason: "all workloads", args: []string{"instance", "restart", "k3x9vq2m", "--wait"},
			replies: replies{getIt: {body: instanceJSON}, restartIt: accepted(), eventsOf: stream(opSucceeded)},
		},
		"instance-restart-one": {
			reason: "a named one", args: []string{"instance", "restart", "k3x9vq2m", "Deployment/fw", "--no-wait"},
			replies: replies{getIt: {body: instanceJSON}, restartIt: accepted()},
		},
		"instance-stop": {
			reason: "two machines", args: []string{"instance", "stop", "k3x9vq2m", "VirtualMachine/fw", "VirtualMachine/sink", "--on-failure", "keep", "--wait"},
			replies: replies{getIt: {body: instanceJSON}, stopIt: accepted(), eventsOf: stream(opSucceeded)},
		},
		"instance-start-dry-run": {
			reason: "what would be done", args: []string{"instance", "start", "k3x9vq2m", "VirtualMachine/fw", "--dry-run"},
			replies: replies{getIt: {body: instanceJSON}, startIt + "?dry_run=true": {
				body: `{"changes":[{"api_version":"kubevirt.io/v1","kind":"VirtualMachine","namespace":"edge","name":"fw","action":"configured","fields":[{"path":"spec.runStrategy","old":"Halted","new":"Always"}]}],"warnings":[]}`,
			}},
		},
		"instance-migrate-pinned": {
			reason: "KubeVirt's reason is shown", args: []string{"instance", "migrate", "k3x9vq2m", "VirtualMachine/fw"},
			replies: replies{getIt: {body: instanceJSON}, migrateIt: problemReply(422, `{"title":"Not supported by the region","status":422,"kind":"unsupported","detail":"cannot migrate workloads: VirtualMachine edge/fw: cannot be migrated while it runs: its volume is not shared",`+
				`"errors":[{"field":"VirtualMachine edge/fw","message":"cannot be migrated while it runs: its volume is not shared"}]}`)},
		},
		"instance-migrate-nothing": {reason: "a machine is required", args: []string{"instance", "migrate", "k3x9vq2m"}},
		"instance-heal": {
			reason:  "what is missing, and two pods",
			args:    []string{"instance", "heal", "k3x9vq2m", "--pod", "fw-1", "--pod", "edge/fw-2", "--force", "--eviction-timeout", "30s", "--wait"},
			replies: replies{getIt: {body: instanceJSON}, healIt: accepted(), eventsOf: stream(opSucceeded)},
		},
		"instance-heal-dry-run": {
			reason: "what would be done", args: []string{"instance", "heal", "k3x9vq2m", "--dry-run"},
			replies: replies{getIt: {body: instanceJSON}, healIt + "?dry_run=true": {
				body: `{"changes":[{"api_version":"apps/v1","kind":"Deployment","namespace":"edge","name":"fw","action":"created"},` +
					`{"api_version":"v1","kind":"Pod","namespace":"edge","name":"fw-1","action":"deleted","message":"replaced by Deployment edge/fw"}],"warnings":[]}`,
			}},
		},
		"instance-heal-drift": {
			reason: "what others have changed", args: []string{"instance", "heal", "k3x9vq2m", "--drift", "--no-wait"},
			replies: replies{getIt: {body: instanceJSON}, healIt: accepted()},
		},
		"instance-drift":       {reason: "who has changed what", args: []string{"instance", "drift", "k3x9vq2m"}, replies: replies{getIt: {body: driftedJSON}}},
		"instance-drift-shown": {reason: "an instance shows its policy", args: []string{"instance", "show", "k3x9vq2m"}, replies: replies{getIt: {body: driftedJSON}}},
		"instance-update-drift": {
			reason: "a policy", args: []string{"instance", "update", "k3x9vq2m", "--drift", "correct", "--drift-ignore", "Deployment/fw:spec.replicas", "--drift-ignore", "metadata.labels", "--no-wait"},
			replies: replies{getIt: {body: instanceJSON}, patchIt: accepted()},
		},
		"instance-update-drift-mode": {reason: "an unknown mode", args: []string{"instance", "update", "k3x9vq2m", "--drift", "fix"}},
		"instance-update-drift-path": {reason: "no path", args: []string{"instance", "update", "k3x9vq2m", "--drift-ignore", "Deployment/fw:"}},
		"instance-rollback-asks": {
			reason: "a person is asked", args: []string{"instance", "rollback", "k3x9vq2m", "--no-wait"}, console: console{person: true, stdin: "Yes\n"},
			replies: replies{getIt: {body: instanceJSON}, rollbackIt: asksBack()},
		},
		"instance-rollback-declined": {
			reason: "and may say no", args: []string{"instance", "rollback", "k3x9vq2m"}, console: console{person: true, stdin: "\n"},
			replies: replies{getIt: {body: instanceJSON}, rollbackIt: asksBack()},
		},
		"instance-rollback-stale": {
			reason: "the confirmed list has changed: it is shown again", args: []string{"instance", "rollback", "k3x9vq2m", "--confirm", "sha256:old"},
			replies: replies{getIt: {body: instanceJSON}, rollbackIt: problemReply(409, braked)},
		},
		"instance-rollback-zero": {reason: "revisions count from 1", args: []string{"instance", "rollback", "k3x9vq2m", "--to", "0"}},
		"instance-delete-orphan": {
			reason: "the objects stay", args: []string{"instance", "delete", "k3x9vq2m", "--orphan", "--on-unreachable", "wait"},
			replies: replies{getIt: {body: instanceJSON}, deleteIt + "?on_unreachable=wait&orphan=true": {status: 202, location: operation1, body: op1}},
		},
		"instance-delete-claims": {
			reason: "with what StatefulSets leave", args: []string{"instance", "delete", "k3x9vq2m", "--claims", "delete"},
			replies: replies{getIt: {body: instanceJSON}, deleteIt + "?claims=delete": {status: 202, location: operation1, body: op1}},
		},
		"instance-delete-dry-run": {
			reason: "what would go and what would stay", args: []string{"instance", "delete", "k3x9vq2m", "--claims", "delete", "--dry-run"},
			replies: replies{getIt: {body: instanceJSON}, deleteIt + "?claims=delete&dry_run=true": {body: `{"changes":[` +
				`{"api_version":"apps/v1","kind":"StatefulSet","namespace":"edge","name":"db","action":"deleted"},` +
				`{"api_version":"v1","kind":"ConfigMap","namespace":"edge","name":"kept","action":"orphaned"},` +
				`{"api_version":"v1","kind":"PersistentVolumeClaim","namespace":"edge","name":"data-db-0","action":"deleted"}],"warnings":["it is slow"]}`}},
		},
		"instance-delete-claims-word":   {reason: "one or the other", args: []string{"instance", "delete", "k3x9vq2m", "--claims", "all"}},
		"instance-delete-claims-orphan": {reason: "objects that stay keep their claims", args: []string{"instance", "delete", "k3x9vq2m", "--claims", "delete", "--orphan"}},
		"instance-diff": {
			reason: "a difference is exit code 1",
			args:   []string{"instance", "diff", "k3x9vq2m", "--set", "replicas=3"},
			replies: replies{
				getIt: {body: instanceJSON}, patchIt + "?dry_run=true": {body: previewJSON},
			},
		},
		"instance-diff-terminal": {
			reason: "coloured on a terminal", console: console{terminal: true},
			args: []string{"instance", "diff", "k3x9vq2m", "--set", "replicas=3"},
			replies: replies{
				getIt: {body: instanceJSON}, patchIt + "?dry_run=true": {body: previewJSON},
			},
		},
		"instance-diff-none": {
			reason: "no difference is exit code 0",
			args:   []string{"instance", "diff", "k3x9vq2m"},
			replies: replies{getIt: {body: instanceJSON}, patchIt + "?dry_run=true": {
				body: `{"changes":[{"api_version":"v1","kind":"Service","name":"s","action":"unchanged"}],"warnings":[]}`,
			}},
		},
		"instance-delete": {
			reason: "none is deleted if one is unknown",
			args:   []string{"instance", "delete", "nowhere", "k3x9vq2m", "--timeout", "90s"},
			replies: replies{
				"GET /v1/vnf_instances?vnf_instance_name=nowhere": {body: `{"vnf_instances":[]}`},
				getIt:                       {body: instanceJSON},
				deleteIt + "?timeout=1m30s": {status: 202, location: operation1, body: op1},
			},
		},
		"instance-delete-elsewhere": {
			reason:  "an instance with the id is in another region, and stays",
			args:    []string{"instance", "delete", "k3x9vq2m", "--region", "west"},
			replies: replies{getIt: {body: instanceJSON}, "GET /v1/vnf_instances?cloud_region_id=west&vnf_instance_name=k3x9vq2m": {body: `{"vnf_instances":[]}`}},
		},
		"instance-delete-named-as-id": {
			reason: "an instance in the namespace has the id of another as its name",
			args:   []string{"instance", "delete", "k3x9vq2m", "-n", "core"},
			replies: replies{
				getIt: {body: instanceJSON}, "GET /v1/vnf_instances?namespace=core&vnf_instance_name=k3x9vq2m": {body: `{"vnf_instances":[` + otherJSON + `]}`},
				"GET /v1/vnf_instances/m1": {body: otherJSON}, "DELETE /v1/vnf_instances/m1": {status: 202, location: operation1, body: op1},
			},
		},
		"instance-delete-here": {
			reason:  "an instance with the id is in the region and the namespace",
			args:    []string{"instance", "delete", "k3x9vq2m", "--region", "east", "-n", "edge"},
			replies: replies{getIt: {body: instanceJSON}, deleteIt: {status: 202, location: operation1, body: op1}},
		},
		"instance-delete-wait": {
			reason: "with --wait it returns when everything is deleted",
			args:   []string{"instance", "delete", "k3x9vq2m", "--wait"},
			replies: replies{
				getIt: {body: instanceJSON}, eventsOf: stream(opSucceeded),
				deleteIt: {status: 202, location: operation1, body: op1},
			},
		},
	})
}
