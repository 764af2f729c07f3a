package cli

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// declaredFiles are a package and the declarations of a region, of the package and of
// two instances.
func declaredFiles(t *testing.T) string {
	t.Helper()
	return folder(t, map[string]string{
		"firewall/metadata.yaml": "name: firewall\nresources: []\n",
		"config":                 twoContexts,
		"lab/1-region.yaml":      "kind: region\ncloud_region_id: east\ncloud_owner: acme\ndescription: The machine room in the east\nlabels: {site: east}\ncredentials: {rotate: token}\nkubeconfig_file: ../config\n",
		"lab/2-package.yaml":     "kind: package\ncsar_id: firewall\npath: ../firewall\n",
		"lab/3-instances.yml": "kind: instance\nvnf_instance_name: fw-1\nvnf_instance_description: The firewall of the edge\ncloud_region_id: east\nnamespace: edge\ncsar_id: firewall\n" +
			"labels: {tenant: blue}\nparameters: {replicas: 2, password: new}\n---\n" +
			"kind: instance\nvnf_instance_name: fw-2\ncloud_region_id: east\nnamespace: edge\ncsar_id: firewall\n",
		"plugins.yaml":     "kind: region\ncloud_region_id: east\ncloud_owner: acme\ndescription: The machine room in the east\nlabels: {site: east}\ncredentials: {rotate: token}\nkubeconfig_file: config\ncni_plugins: {macvlan: true}\n",
		"lab/notes.txt":    "not a declaration",
		"changed.yaml":     "kind: instance\nvnf_instance_name: fw-1\ncloud_region_id: east\nnamespace: edge\ncsar_id: firewall\nparameters: {password: new, level: {a: 1}}\n",
		"same.yaml":        "kind: instance\nvnf_instance_name: fw-1\nvnf_instance_description: The firewall of the edge\ncloud_region_id: east\nnamespace: edge\ncsar_id: firewall\nlabels: {tenant: blue}\nparameters: {replicas: 2, password: new}\n",
		"lists.yaml":       "kind: instance\nvnf_instance_name: fw-1\nvnf_instance_description: The firewall of the edge\ncloud_region_id: east\nnamespace: edge\ncsar_id: firewall\nlabels: {tenant: blue}\nparameters: {replicas: 2, password: new}\nvolumes: [{volume: data}]\nworkload_clusters: [{cluster: c, cloud_region_id: r}]\n",
		"placed.yaml":      "kind: instance\nvnf_instance_name: fw-1\nvnf_instance_description: The firewall of the edge\nnamespace: edge\ncsar_id: firewall\nlabels: {tenant: blue}\nparameters: {replicas: 2, password: new}\nplacement: {selector: site=edge}\n",
		"adopt.yaml":       "kind: instance\nvnf_instance_name: fw-1\nvnf_instance_description: The firewall of the edge\ncloud_region_id: east\nnamespace: edge\ncsar_id: firewall\nlabels: {tenant: blue}\nparameters: {replicas: 2, password: new}\nadopt: true\n",
		"wrong.yaml":       "kind: instance\nvnf_instance_nam: fw-1\ncloud_region_id: east\n---\nkind: pod\n",
		"badpackage.yaml":  "kind: package\ncsar_id: x\npath: nowhere\n",
		"empty/readme.txt": "",
	})
}

// digestOf returns the digest that the server has of a packed folder.
func digestOf(t *testing.T, folder string) string {
	t.Helper()
	archive, err := pack(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive))); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(archive))
}

func TestApply(t *testing.T) {
	files := declaredFiles(t)
	find := func(name string) string {
		return "GET /v1/vnf_instances?cloud_region_id=east&namespace=edge&vnf_instance_name=" + name
	}
	const findPlaced = "GET /v1/vnf_instances?namespace=edge&project=default&vnf_instance_name=fw-1"
	none, found := reply{body: `{"vnf_instances":[]}`}, reply{body: `{"vnf_instances":[` + instanceJSON + `]}`}
	known := reply{body: strings.Replace(packageJSON, "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", digestOf(t, filepath.Join(files, "firewall")), 1)}
	same := reply{body: `{"changes":[{"api_version":"v1","kind":"Service","namespace":"edge","name":"firewall","action":"unchanged"}],"warnings":[]}`}
	drifted := reply{body: previewJSON}
	other := strings.NewReplacer("k3x9vq2m", "m1", `"fw-1"`, `"dns"`).Replace(instanceJSON)
	cases := map[string]commandCase{
		"apply-new": {
			reason: "everything is created, in order",
			args:   []string{"apply", "-f", "FILES/lab"},
			replies: replies{
				"POST /v1/cloud_regions": {status: 201, body: regionJSON}, "PUT /v1/packages/firewall": {status: 201, body: packageJSON},
				find("fw-1"): none, find("fw-2"): none, create: accepted(), eventsOf: stream(op1, op3),
			},
		},
		"apply-new-dry": {
			reason: "a dry run changes nothing; an instance of a package that is not there cannot be checked", args: []string{"apply", "-f", "FILES/lab", "--dry-run"},
			replies: replies{find("fw-1"): none, find("fw-2"): none},
		},
		"apply-same": {
			reason: "what is as declared stays; a value that the server masks is compared by a dry run",
			args:   []string{"apply", "-f", "FILES/lab/1-region.yaml", "-f", "FILES/lab/2-package.yaml", "-f", "FILES/same.yaml"},
			replies: replies{
				"GET /v1/cloud_regions/east": {body: regionJSON}, "PATCH /v1/cloud_regions/east": {body: regionJSON}, "GET /v1/packages/firewall": known,
				find("fw-1"): found, getIt: {body: instanceJSON}, patchIt + "?dry_run=true": same,
			},
		},
		"apply-drift": {
			reason: "an instance whose objects differ is applied again", args: []string{"apply", "-f", "FILES/same.yaml", "--wait"},
			replies: replies{find("fw-1"): found, getIt: {body: instanceJSON}, patchIt + "?dry_run=true": drifted, patchIt: accepted(), eventsOf: stream(op2, opSucceeded)},
		},
		"apply-changed": {
			reason: "what is not declared any more is removed", args: []string{"apply", "-f", "FILES/changed.yaml", "--no-wait", "-o", "json"},
			replies: replies{find("fw-1"): found, getIt: {body: instanceJSON}, patchIt: accepted()},
		},
		"apply-region": {
			reason: "another access is the server's to see", args: []string{"apply", "-f", "FILES/lab/1-region.yaml"},
			replies: replies{"GET /v1/cloud_regions/east": {body: regionJSON}, "PATCH /v1/cloud_regions/east": {body: strings.Replace(regionJSON, `"updated_at":"2026-11-20T09:00`, `"updated_at":"2026-11-20T10:00`, 1)}},
		},
		"apply-plugins": {
			reason: "the plugins of a region are declared, too", args: []string{"apply", "-f", "FILES/plugins.yaml", "-o", "json"},
			replies: replies{"GET /v1/cloud_regions/east": {body: regionJSON}, "PATCH /v1/cloud_regions/east": {body: strings.Replace(regionJSON, `"updated_at":"2026-11-20T09:00`, `"updated_at":"2026-11-20T10:00`, 1)}},
		},
		"apply-failed": {
			reason: "an instance that fails does not stop the others", args: []string{"apply", "-f", "FILES/lab/3-instances.yml", "--wait"},
			replies: replies{find("fw-1"): none, find("fw-2"): none, create: accepted(), eventsOf: stream(op2, opFailed)},
		},
		"apply-wrong": {reason: "everything that is wrong is said before anything is sent", args: []string{"apply", "-f", "FILES/wrong.yaml"}},
		"apply-wrong-package": {
			reason: "so is a package that is not there", args: []string{"apply", "-f", "FILES/lab/1-region.yaml", "-f", "FILES/badpackage.yaml"},
		},
		"apply-same-lists": {
			reason: "a default that the server shows is no difference", args: []string{"apply", "-f", "FILES/lists.yaml"},
			replies: replies{
				find("fw-1"):              found,
				getIt:                     {body: strings.Replace(instanceJSON, `"csar_id"`, `"volumes":[{"volume":"data","claim":"data"}],"workload_clusters":[{"cluster":"c","cloud_region_id":"r"}],"csar_id"`, 1)},
				patchIt + "?dry_run=true": same,
			},
		},
		"apply-adopt": {
			reason: "a new instance takes over objects without an owner", args: []string{"apply", "-f", "FILES/adopt.yaml", "--no-wait"},
			replies: replies{find("fw-1"): none, create: accepted()},
		},
		"apply-adopt-again": {
			reason: "then it is an instance like the others", args: []string{"apply", "-f", "FILES/adopt.yaml"},
			replies: replies{find("fw-1"): found, getIt: {body: instanceJSON}, patchIt + "?dry_run=true": same},
		},
		"apply-placed": {
			reason: "the server chooses the region of a new instance", args: []string{"apply", "-f", "FILES/placed.yaml", "--no-wait", "-o", "json"},
			replies: replies{findPlaced: none, create: accepted()},
		},
		"apply-placed-dry": {
			reason: "a dry run says which", args: []string{"apply", "-f", "FILES/placed.yaml", "--dry-run"},
			replies: replies{findPlaced: none, create + "?dry_run=true": {body: `{"placement":{"cloud_region_id":"west","prefer":"fewest-instances","candidates":[{"cloud_region_id":"west","reason":"chosen","vnf_instances":0}]},` +
				`"changes":[{"api_version":"v1","kind":"Service","namespace":"edge","name":"firewall","action":"created"}],"warnings":[]}`}},
		},
		"apply-placed-new": {
			reason: "the choice cannot be known before the regions are", args: []string{"apply", "-f", "FILES/lab/1-region.yaml", "-f", "FILES/placed.yaml", "--dry-run"},
			replies: replies{findPlaced: none},
		},
		"apply-placed-again": {
			reason: "the instance stays in its region", args: []string{"apply", "-f", "FILES/placed.yaml"},
			replies: replies{findPlaced: found, getIt: {body: instanceJSON}, patchIt + "?dry_run=true": same},
		},
		"apply-placed-twice": {
			reason: "the name must tell which instance is meant", args: []string{"apply", "-f", "FILES/placed.yaml"},
			replies: replies{findPlaced: {body: `{"vnf_instances":[` + instanceJSON + `,` + strings.NewReplacer("k3x9vq2m", "m1", `"east"`, `"west"`).Replace(instanceJSON) + `]}`}},
		},
		"apply-placed-prune": {
			reason: "an instance that the server has placed is declared, wherever it is", args: []string{"apply", "-f", "FILES/placed.yaml", "--prune", "-l", "tenant=blue", "--yes", "--no-wait"},
			replies: replies{
				findPlaced: none, create: accepted(),
				"GET /v1/vnf_instances?label=tenant%3Dblue": {body: `{"vnf_instances":[` + instanceJSON + `,` + other + `]}`},
				"DELETE /v1/vnf_instances/m1":               {status: 202, location: operation1, body: op1},
			},
		},
		"apply-nothing":     {reason: "a file is needed", args: []string{"apply"}},
		"apply-empty":       {reason: "a folder must have declarations", args: []string{"apply", "-f", "FILES/empty"}},
		"apply-prune-alone": {reason: "nothing is pruned without a label", args: []string{"apply", "-f", "FILES/same.yaml", "--prune"}},
		"apply-prune-asks": {
			reason: "a deletion must be confirmed", args: []string{"apply", "-f", "FILES/same.yaml", "--prune", "-l", "tenant=blue"},
			replies: replies{
				find("fw-1"): found, getIt: {body: instanceJSON}, patchIt + "?dry_run=true": same,
				"GET /v1/vnf_instances?label=tenant%3Dblue": {body: `{"vnf_instances":[` + instanceJSON + `,` + other + `]}`},
			},
		},
		"apply-prune": {
			reason: "only what has the label and is not declared is deleted", args: []string{"apply", "-f", "FILES/same.yaml", "--prune", "-l", "tenant=blue", "--yes", "--no-wait"},
			replies: replies{
				find("fw-1"): found, getIt: {body: instanceJSON}, patchIt + "?dry_run=true": same,
				"GET /v1/vnf_instances?label=tenant%3Dblue": {body: `{"vnf_instances":[` + instanceJSON + `,` + other + `]}`},
				"DELETE /v1/vnf_instances/m1":               {status: 202, location: operation1, body: op1},
			},
		},
		"apply-prune-failed": {
			reason: "nothing is pruned after a failure", args: []string{"apply", "-f", "FILES/same.yaml", "--prune", "-l", "tenant=blue", "--yes"},
			replies: replies{find("fw-1"): found, getIt: {body: instanceJSON}, patchIt + "?dry_run=true": problemReply(422, `{"status":422,"detail":"cannot change it","kind":"failed"}`)},
		},
	}
	for name, c := range cases {
		for i := range c.args {
			c.args[i] = strings.Replace(c.args[i], "FILES", files, 1)
		}
		c.hidden = files
		cases[name] = c
	}
	play(t, cases)
}

func TestDifference(t *testing.T) {
	cases := map[string]struct{ reason, before, after, want string }{
		"Same":   {"no change", `{"a":{"b":1}}`, `{"a":{"b":1}}`, `{}`},
		"New":    {"a field is added", `{}`, `{"a":1}`, `{"a":1}`},
		"Gone":   {"a field is removed", `{"a":1,"b":2}`, `{"b":2}`, `{"a":null}`},
		"Inner":  {"inside another one", `{"a":{"b":1,"c":2}}`, `{"a":{"b":3}}`, `{"a":{"b":3,"c":null}}`},
		"List":   {"a list is replaced", `{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1]}`},
		"Type":   {"a map for a value", `{"a":1}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"Null":   {"null is nothing", `{"a":1}`, `{"a":null}`, `{"a":null}`},
		"Number": {"a number is not rounded", `{"a":12345678901234567890}`, `{"a":12345678901234567891}`, `{"a":12345678901234567891}`},
	}
	for name, c := range cases {
		var before, after map[string]any
		if unmarshal([]byte(c.before), &before) != nil || unmarshal([]byte(c.after), &after) != nil {
			t.Fatal(name)
		}
		if got := string(jsonOf(difference(before, after))); got != c.want {
			t.Errorf("%s: %s: got %s, want %s", name, c.reason, got, c.want)
		}
	}
}
