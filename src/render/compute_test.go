package render_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// askedOf returns the compute profiles of an entry of oof_parameters in YAML.
func askedOf(t testing.TB, oof string) ([]render.Compute, nf.Violations) {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(oof), &fields); err != nil {
		t.Fatal(err)
	}
	return render.AskedCompute(nf.Inputs{OOF: []map[string]any{{"site": "a"}, fields}})
}

// computed returns the first object of a plan with the compute profiles that are asked for.
func computed(t testing.TB, p render.Plan, asked []render.Compute) (render.Plan, map[string]any, error) {
	t.Helper()
	before, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out, failed := p.Compute(asked)
	if after, err := json.Marshal(p); err != nil || string(after) != string(before) {
		t.Errorf("the original was changed: %s, error %v", after, err)
	}
	if failed != nil {
		return out, nil, failed
	}
	return out, out.Stages[0].Objects[0].Object.Object, nil
}

// TestCompute compares the pods of one workload with those that its profile makes of them.
func TestCompute(t *testing.T) {
	t.Parallel()
	const selected = `selector: {matchLabels: {app: web}}, `
	cases := map[string]struct {
		reason, profile string // the profile in YAML
		use             string // further fields of the entry
		object, want    string // the object; the specification of its pods
	}{
		"Resources": {
			reason: "requests and limits replace those of the first container; the others stay", profile: `{requests: {cpu: 2, memory: 4Gi}, limits: {memory: 4Gi}}`,
			object: workload("Deployment", "web", `template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1, ephemeral-storage: 1Gi}}}, {name: b}]}}`),
			want:   `{containers: [{name: a, resources: {requests: {cpu: "2", memory: 4Gi, ephemeral-storage: 1Gi}, limits: {memory: 4Gi}}}, {name: b}]}`,
		},
		"Container": {
			reason: "another container than the first", profile: `{limits: {cpu: 500m}}`, use: `container: b, `,
			object: workload("StatefulSet", "web", `template: {spec: {containers: [{name: a}, {name: b}]}}`),
			want:   `{containers: [{name: a}, {name: b, resources: {limits: {cpu: 500m}}}]}`,
		},
		"Pages": {
			reason: "huge pages and devices are requested and limited", profile: `{requests: {memory: 1Gi}, hugepages: {1Gi: 2Gi, 2Mi: 64Mi}, devices: {nvidia.com/gpu: 2}}`,
			object: workload("DaemonSet", "web", template),
			want: `{containers: [{name: c, resources: {requests: {memory: 1Gi, hugepages-1Gi: 2Gi, hugepages-2Mi: 64Mi, nvidia.com/gpu: "2"},
				limits: {hugepages-1Gi: 2Gi, hugepages-2Mi: 64Mi, nvidia.com/gpu: "2"}}}]}`,
		},
		"Own": {
			reason: "huge pages need cpu or memory, which the container may have itself", profile: `{hugepages: {2Mi: 4Mi}}`,
			object: workload("ReplicaSet", "web", `template: {spec: {containers: [{name: a, resources: {limits: {cpu: 1}}}]}}`),
			want:   `{containers: [{name: a, resources: {requests: {hugepages-2Mi: 4Mi}, limits: {cpu: 1, hugepages-2Mi: 4Mi}}}]}`,
		},
		"Nodes": {
			reason: "labels of nodes are required", profile: `{node: {kubernetes.io/arch: amd64, feature.node.kubernetes.io/cpu-cpuid.AVX2: true, example.com/rack: "*"}}`,
			object: `{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a}]}}}}}}`,
			want: `{containers: [{name: a}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
				{key: example.com/rack, operator: Exists}, {key: feature.node.kubernetes.io/cpu-cpuid.AVX2, operator: In, values: ["true"]}, {key: kubernetes.io/arch, operator: In, values: [amd64]}]}]}}}}`,
		},
		"Alternatives": {
			reason: "each alternative of the pods is combined with each of the flavor", profile: `{node: {m: "1"}}`, use: `flavor: [{a: "1"}, {b: "1"}], `,
			object: workload("Deployment", "web", `template: {spec: {containers: [{name: a}], affinity: {podAffinity: {}, nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: x, operator: Exists}]}, {matchFields: []}]}}}}}`),
			want: `{containers: [{name: a}], affinity: {podAffinity: {}, nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
				{matchExpressions: [{key: x, operator: Exists}, {key: m, operator: In, values: ["1"]}, {key: a, operator: In, values: ["1"]}]},
				{matchExpressions: [{key: x, operator: Exists}, {key: m, operator: In, values: ["1"]}, {key: b, operator: In, values: ["1"]}]},
				{matchFields: [], matchExpressions: [{key: m, operator: In, values: ["1"]}, {key: a, operator: In, values: ["1"]}]},
				{matchFields: [], matchExpressions: [{key: m, operator: In, values: ["1"]}, {key: b, operator: In, values: ["1"]}]}]}}}}`,
		},
		"Any": {
			reason: "a flavor without labels is that of every node", profile: `{}`, use: `flavor: [{}], `,
			object: `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a}]}}`, want: `{containers: [{name: a}]}`,
		},
		"Spread": {
			reason: "pods are spread by the labels that select them", profile: `{spread: node}`,
			object: workload("Deployment", "web", selected+`template: {spec: {containers: [{name: a}], topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/zone}]}}`),
			want: `{containers: [{name: a}], topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/zone},
				{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]}`,
		},
		"Spreads": {
			reason: "a constraint of the pods for the same nodes stays", profile: `{spread: zone}`,
			object: workload("Deployment", "web", selected+`template: {spec: {containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 2, topologyKey: topology.kubernetes.io/zone}]}}`),
			want:   `{containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 2, topologyKey: topology.kubernetes.io/zone}]}`,
		},
		"Labels": {
			reason: "or by their own labels, without the service's", profile: `{spread: zone}`,
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: web}, spec: {template: {metadata: {labels: {job: web, k8splugin.io/rb-instance-id: x}}, spec: {containers: [{name: a}]}}}}`,
			want:   `{containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {job: web}}}]}`,
		},
		"Tolerations": {
			reason: "tolerations are added, unless they are there", profile: `{tolerations: [{key: a, operator: Exists}, {key: b, value: "1", effect: NoSchedule}]}`,
			object: workload("Deployment", "web", `template: {spec: {containers: [{name: a}], tolerations: [{key: a, operator: Exists}]}}`),
			want:   `{containers: [{name: a}], tolerations: [{key: a, operator: Exists}, {key: b, value: "1", effect: NoSchedule}]}`,
		},
		"Machine": {
			reason: "KubeVirt gives the resources of a machine to its pod", profile: `{requests: {cpu: 2, memory: 4Gi}, limits: {cpu: 2}, hugepages: {1Gi: 4Gi}, node: {a: b}}`,
			object: `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web}, spec: {template: {spec: {domain: {devices: {}}}}}}`,
			want: `{domain: {devices: {}, resources: {requests: {cpu: "2", memory: 4Gi}, limits: {cpu: "2"}}, memory: {guest: 4Gi, hugepages: {pageSize: 1Gi}}},
				affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			use, flavor, found := strings.Cut(tc.use, "flavor: ")
			asked, wrong := askedOf(t, `{compute_profiles: [{workload: web, `+use+`profile: `+tc.profile+`}]}`)
			if wrong != nil {
				t.Fatal(wrong)
			}
			if found {
				if err := yaml.Unmarshal([]byte(strings.TrimSuffix(flavor, ", ")), &asked[0].Profile.FlavorNodes); err != nil {
					t.Fatal(err)
				}
			}
			p, object, err := computed(t, planOf(t, tc.object), asked)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(specIn(t, tc.want), podsOf(t, object)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if _, again, err := computed(t, p, asked); err != nil || !cmp.Equal(object, again) {
				t.Errorf("a repetition changes the object: %v", cmp.Diff(object, again))
			}
		})
	}
}

// specIn returns a specification in YAML, with the numbers of objects.
func specIn(t testing.TB, text string) map[string]any {
	t.Helper()
	u := planOf(t, `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: `+strings.ReplaceAll(text, "\t", " ")+`}`).Stages[0].Objects[0].Object
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	return spec
}

// podsOf returns the specification of the pods of an object.
func podsOf(t testing.TB, object map[string]any) map[string]any {
	t.Helper()
	for _, path := range [][]string{{"spec", "jobTemplate", "spec", "template", "spec"}, {"spec", "template", "spec"}, {"spec"}} {
		if spec, found, _ := unstructured.NestedMap(object, path...); found {
			return spec
		}
	}
	t.Fatalf("no pods in %v", object)
	return nil
}

// TestComputeRefused compares the violations of profiles that the workloads cannot have.
func TestComputeRefused(t *testing.T) {
	t.Parallel()
	const machine = `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm}, spec: {instancetype: {name: x}, template: {spec: {domain: {}}}}}`
	small := workload("Deployment", "web", `template: {spec: {containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b}]}}`)
	cases := map[string]struct {
		reason, oof string
		want        []string
	}{
		"Workload":  {"the package does not have it", `compute_profiles: [{workload: db, profile: {}}]`, []string{`oof_parameters[1].compute_profiles[0].workload: "db" is not in the package; its objects with pods are Deployment/web, StatefulSet/app, VirtualMachine/vm`}},
		"Which":     {"one of several is meant", `compute_profiles: [{profile: {}}]`, []string{`oof_parameters[1].compute_profiles[0].workload: is required: the package has several objects with pods: Deployment/web, StatefulSet/app, VirtualMachine/vm`}},
		"Twice":     {"a workload has one profile", `compute_profiles: [{workload: Deployment/web, profile: {}}, {workload: web, profile: {}}]`, []string{`oof_parameters[1].compute_profiles[1].workload: Deployment/web has another compute profile`}},
		"Container": {"the pods do not have it", `compute_profiles: [{workload: web, container: z, profile: {}}]`, []string{`oof_parameters[1].compute_profiles[0].container: Deployment/web has no container "z"; its containers are a, b`}},
		"Limit":     {"the container limits what the profile requests", `compute_profiles: [{workload: web, profile: {requests: {cpu: 1500m}}}]`, []string{`oof_parameters[1].compute_profiles[0].profile: requests 1500m of cpu, and container a of Deployment/web has the limit 1`}},
		"Pages":     {"huge pages need cpu or memory", `compute_profiles: [{workload: web, container: b, profile: {hugepages: {2Mi: 2Mi}}}]`, []string{`oof_parameters[1].compute_profiles[0].profile: has huge pages, which require cpu or memory: neither it nor container b of Deployment/web requests them`}},
		"Spread":    {"pods without labels cannot be spread", `compute_profiles: [{workload: web, profile: {spread: node}}]`, []string{`oof_parameters[1].compute_profiles[0].profile: spreads pods, and the pods of Deployment/web have no labels`}},
		"Field":     {"the package has another type there", `compute_profiles: [{workload: app, profile: {requests: {cpu: 1}}}]`, []string{`m.yaml:7: StatefulSet app: spec.template.spec.containers[0].resources: cannot hold the resources of a compute profile`}},
		"Machine": {"a machine has neither containers nor the resources of pods", `compute_profiles: [{workload: vm, container: a, profile: {devices: {a.b/c: 1}, limits: {ephemeral-storage: 1Gi}, hugepages: {2Mi: 2Mi, 1Gi: 1Gi}}}]`, []string{
			`oof_parameters[1].compute_profiles[0].container: VirtualMachine/vm is a virtual machine, which cannot have a compute profile for one container`,
			`oof_parameters[1].compute_profiles[0].profile: VirtualMachine/vm is a virtual machine, which cannot have a compute profile with devices: its spec.domain.devices names them`,
			`oof_parameters[1].compute_profiles[0].profile: VirtualMachine/vm is a virtual machine, which cannot have a compute profile with ephemeral-storage`,
			`oof_parameters[1].compute_profiles[0].profile: VirtualMachine/vm is a virtual machine, which cannot have a compute profile with huge pages of two sizes`,
			`oof_parameters[1].compute_profiles[0].profile: VirtualMachine/vm is a virtual machine, which cannot have a compute profile with resources, because it has an instancetype`,
		}},
		"Optional": {"a directive of OOF may name anything", `directives: [{id: vfc-1, type: vnfc, directives: [{type: flavor_directives, attributes: [{attribute_name: f, attribute_value: k8s-1}]}]}]`, nil},
		"Directed": {"it names a workload", `directives: [{id: web, type: vnfc, directives: [{type: flavor_directives, attributes: [{attribute_name: f, attribute_value: k8s-1}]}]}], compute_profiles: [{workload: "*", profile: {spread: node}}]`, []string{
			`oof_parameters[1].compute_profiles[0].profile: spreads pods, and the pods of Deployment/web have no labels`,
			`oof_parameters[1].compute_profiles[0].profile: spreads pods, and the pods of StatefulSet/app have no labels`,
			`oof_parameters[1].compute_profiles[0].profile: spreads pods, and the pods of VirtualMachine/vm have no labels`,
			`oof_parameters[1].directives[0].directives[0].attributes[0]: Deployment/web has another compute profile`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, wrong := askedOf(t, "{"+tc.oof+"}")
			if wrong != nil {
				t.Fatal(wrong)
			}
			p := planOf(t, small, workload("StatefulSet", "app", `template: {spec: {containers: [{name: a, resources: none}]}}`), machine)
			_, err := p.Compute(asked)
			if diff := cmp.Diff(tc.want, linesOf(nf.ViolationsOf(err))); diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func linesOf(all nf.Violations) (out []string) {
	for _, v := range all {
		out = append(out, v.String())
	}
	return out
}

// TestAskedComputeRefused compares the violations of requests with a wrong form.
func TestAskedComputeRefused(t *testing.T) {
	t.Parallel()
	const entry = `oof_parameters[1].compute_profiles[0]`
	cases := map[string]struct {
		reason, oof string
		want        []string
	}{
		"List":    {"it is a list", `compute_profiles: large`, []string{`oof_parameters[1].compute_profiles: must be a list of compute profiles`}},
		"Entries": {"its entries have these fields", `compute_profiles: [large, {workload: 3, profile: "", vdu: a}]`, []string{entry + `: must be an object`, `oof_parameters[1].compute_profiles[1].vdu: unknown key; allowed: workload, container, profile`, `oof_parameters[1].compute_profiles[1].workload: must be a text`, `oof_parameters[1].compute_profiles[1].profile: must be the name of a compute profile, or a profile`}},
		"Profile": {"a profile is required", `compute_profiles: [{workload: web}]`, []string{entry + `.profile: must be the name of a compute profile, or a profile`}},
		"Type":    {"a profile is an object", `compute_profiles: [{profile: 3}]`, []string{entry + `.profile: must be an object`}},
		"Fields": {"and its fields have these values", `compute_profiles: [{profile: {requests: {cpu: much, gpu: 1, memory: 0}, limits: [], hugepages: {1Gi: 1500Mi, 4Ki: 1}, spread: rack, flavor: large, size: 3, node: {a b: c, d: "e f", g: ""}}}]`, []string{
			entry + `.profile.flavor: "large" is not a flavor of the region: its name begins with k8s-`,
			entry + `.profile.hugepages.4Ki: unknown key; allowed: 1Gi, 2Mi`,
			entry + `.profile.hugepages.1Gi: 1500Mi is not a multiple of the size of the pages`,
			entry + `.profile.limits: must be an object`,
			entry + `.profile.node.a b: is not a label name`,
			entry + `.profile.node.d: "e f" is not a label value`,
			entry + `.profile.node.g: must be a value, or "*" for any`,
			entry + `.profile.requests.cpu: "much" is not a quantity, such as 500m or 2Gi`,
			entry + `.profile.requests.gpu: unknown key; allowed: cpu, ephemeral-storage, memory`,
			entry + `.profile.requests.memory: must be positive`,
			entry + `.profile.size: unknown key; allowed: requests, limits, hugepages, devices, node, flavor, spread, tolerations`,
			entry + `.profile.spread: must be node or zone`,
		}},
		"Devices": {"devices are counted", `compute_profiles: [{profile: {devices: {cpu: 1, a.b/c: 1.5, a.b/d: 0, a.b/e: "1", kubernetes.io/f: 1}}}]`, []string{
			entry + `.profile.devices.a.b/c: must be a whole number of devices, at least 1`,
			entry + `.profile.devices.a.b/d: must be a whole number of devices, at least 1`,
			entry + `.profile.devices.a.b/e: must be a whole number of devices, at least 1`,
			entry + `.profile.devices.cpu: is not the name of an extended resource, such as nvidia.com/gpu`,
			entry + `.profile.devices.kubernetes.io/f: is not the name of an extended resource, such as nvidia.com/gpu`,
		}},
		"Tolerations": {"tolerations are those of Kubernetes", `compute_profiles: [{profile: {tolerations: [{}, {key: a, operator: In, effect: Never}, {operator: Exists, value: a}, {key: a b, value: a b, seconds: 1}]}}]`, []string{
			entry + `.profile.tolerations[0].key: is required, unless the operator is Exists`,
			entry + `.profile.tolerations[1].operator: must be Equal or Exists`,
			entry + `.profile.tolerations[1].effect: must be NoSchedule, PreferNoSchedule or NoExecute`,
			entry + `.profile.tolerations[2].value: must be empty if the operator is Exists`,
			entry + `.profile.tolerations[3].seconds: unknown key; allowed: key, operator, value, effect`,
			entry + `.profile.tolerations[3].key: is not a label name`,
			entry + `.profile.tolerations[3].value: "a b" is not a label value`,
		}},
		"Order":  {"a request is at most the limit", `compute_profiles: [{profile: {requests: {cpu: 2}, limits: {cpu: 1500m}}}]`, []string{entry + `.profile.requests.cpu: 2 is above the limit 1500m`}},
		"Plain":  {"other keys are variables, and so are directives of another form", `a: 1, directives: [1, {id: 1}, {id: a, directives: [{type: other}, 2]}]`, nil},
		"Number": {"their number is limited", `compute_profiles: [` + strings.Repeat(`{profile: a},`, 64) + `{profile: a}]`, []string{`oof_parameters: have 65 compute profiles; at most 64 are allowed`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, wrong := askedOf(t, "{"+tc.oof+"}")
			if diff := cmp.Diff(tc.want, linesOf(wrong)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzAskedCompute reads anything, and gives it to a workload.
func FuzzAskedCompute(f *testing.F) {
	f.Add(`{"compute_profiles": [{"workload": "web", "container": "c", "profile": {"requests": {"cpu": 2}, "hugepages": {"2Mi": "4Mi"}, "devices": {"a.b/c": 1}, "node": {"a": "*"}, "spread": "zone", "tolerations": [{"operator": "Exists"}]}}]}`)
	f.Add(`{"directives": [{"id": "web", "directives": [{"type": "flavor_directives", "attributes": [{"attribute_value": "k8s-1"}]}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var fields map[string]any
		if json.Unmarshal([]byte(text), &fields) != nil {
			return
		}
		asked, wrong := render.AskedCompute(nf.Inputs{OOF: []map[string]any{fields}})
		if slices.ContainsFunc(wrong, func(v nf.Violation) bool { return v.Message == "" || v.Field == "" }) {
			t.Errorf("a violation does not say what is wrong: %v", wrong)
		}
		if p, err := planOf(t, workload("Deployment", "web", template)).Compute(asked); err == nil {
			_, err = p.Compute(asked)
			if err != nil {
				t.Errorf("a repetition fails: %v", err)
			}
		}
	})
}
