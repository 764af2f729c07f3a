package csar_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// scriptsOf returns a CSAR whose VNF has the operations of the interface Vnflcm.
func scriptsOf(operations string) map[string]string {
	return csartest.Described(`tosca_definitions_version: tosca_simple_yaml_1_2
imports: [types.yaml]
topology_template:
  substitution_mappings:
    node_type: example.VNF
    properties: {flavour_id: simple}
  node_templates:
    VNF:
      type: example.VNF
      artifacts:
        setup: {type: tosca.artifacts.Implementation.Bash, file: ../Scripts/set up.sh}
        report: {type: tosca.artifacts.Implementation.Python, file: ../Scripts/report.py}
        binary: {type: tosca.artifacts.Deployment.Image, file: ../Scripts/report.py}
      interfaces:
        Vnflcm:
`+operations, map[string]string{"Files/a.yaml": configMap, "Scripts/set up.sh": "echo $HOME\n", "Scripts/report.py": "print(1)\n"})
}

// jobOf returns the Job of hooks as Kubernetes reads it: with no unknown field.
func jobOf(t *testing.T, h render.Hook) batchv1.Job {
	t.Helper()
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(h.Object.Object, &job, true); err != nil {
		t.Fatal(err)
	}
	return job
}

func TestScripts(t *testing.T) {
	t.Parallel()
	const both = "          inputs: {site: west}\n          instantiate_start: []\n          instantiate_end: {implementation: setup, inputs: {mode: first, timeout: 30, service_account: setup}}\n          terminate_start: {implementation: report, inputs: {image: example.org/python}}\n"
	_, out, err := render1(t, scriptsOf(both), map[string]any{"flavour_id": "simple", "script_image": "example.org/bash", "token": "t0p"})
	if err != nil {
		t.Fatal(err)
	}
	type summary struct {
		Kind, Name, Namespace string
		Event                 nf.HookEvent
		Weight                int
	}
	var got []summary
	for _, h := range out.Hooks {
		got = append(got, summary{h.GetKind(), h.GetName(), h.GetNamespace(), h.Events[0], h.Weight})
	}
	if diff := cmp.Diff([]summary{
		{"Secret", "v1-instantiate-end", "mine", nf.PostInstall, 0}, {"Job", "v1-instantiate-end", "mine", nf.PostInstall, 1},
		{"Secret", "v1-terminate-start", "mine", nf.PreDelete, 0}, {"Job", "v1-terminate-start", "mine", nf.PreDelete, 1},
	}, got); diff != "" {
		t.Fatalf("the hooks (-want +got):\n%s", diff)
	}
	content := out.Hooks[0].Object.Object["stringData"].(map[string]any)
	var inputs map[string]any
	if err := json.Unmarshal([]byte(content["inputs.json"].(string)), &inputs); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"operation": "instantiate_end", "vnfInstanceId": "v1", "namespace": "mine", "inputs": map[string]any{"site": "west", "mode": "first"}, "additionalParams": map[string]any{"token": "t0p"},
	}, inputs); diff != "" || content["script"] != "echo $HOME\n" {
		t.Errorf("the script %q and its inputs (-want +got):\n%s", content["script"], diff)
	}
	first, second := jobOf(t, out.Hooks[1]).Spec, jobOf(t, out.Hooks[3]).Spec
	if c := first.Template.Spec.Containers[0]; c.Image != "example.org/bash" || strings.Join(c.Command, " ") != "bash /vnflcm/script /vnflcm/inputs.json" || *first.ActiveDeadlineSeconds != 30 || *first.BackoffLimit != 0 || first.Template.Spec.ServiceAccountName != "setup" {
		t.Errorf("the inputs say how the script runs, got %+v", first)
	}
	if c := second.Template.Spec.Containers[0]; c.Image != "example.org/python" || c.Command[0] != "python3" || *second.ActiveDeadlineSeconds != 600 || *second.Template.Spec.AutomountServiceAccountToken {
		t.Errorf("without them, a script has ten minutes and no access to the API server, got %+v", second)
	}
}

func TestScriptsThatDoNotRun(t *testing.T) {
	t.Parallel()
	run := map[string]any{"flavour_id": "simple", "script_image": "example.org/bash"}
	cases := map[string]struct {
		reason     string
		operations string
		parameters map[string]any
		fault      string // "": a warning
		warning    string
	}{
		"no image":        {"a script that is forgotten in silence is worse than an error", "instantiate_end: setup", map[string]any{"flavour_id": "simple"}, "parameters.script_image: is required: it runs the script Scripts/set up.sh of operation instantiate_end", ""},
		"empty image":     {"who wants no scripts says so", "instantiate_end: setup", map[string]any{"flavour_id": "simple", "script_image": ""}, "", "because script_image is empty"},
		"wrong image":     {"an image is a text", "instantiate_end: setup", map[string]any{"flavour_id": "simple", "script_image": 1}, "parameters.script_image: must be a text", ""},
		"scale":           {"an operation without hooks is told", "scale_end: setup", run, "", "the script Scripts/set up.sh of operation scale_end is not run"},
		"unknown type":    {"nothing is guessed from a name", "instantiate_end: binary", run, `interfaces.Vnflcm.instantiate_end: has an artifact of type "tosca.artifacts.Deployment.Image"`, ""},
		"endless":         {"a deadline is a number", "instantiate_end: {implementation: setup, inputs: {timeout: never}}", run, "inputs.timeout must be a number of seconds", ""},
		"out of range":    {"it has a limit", "instantiate_end: {implementation: setup, inputs: {timeout: 0}}", run, "inputs.timeout must be a number of seconds", ""},
		"without scripts": {"an empty operation runs nothing, and needs no image", "instantiate_end: []", map[string]any{"flavour_id": "simple"}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out, err := render1(t, scriptsOf("          "+tc.operations+"\n"), tc.parameters)
			switch {
			case tc.fault != "":
				if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), tc.fault) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.fault)
				}
			case err != nil || len(out.Hooks) > 0:
				t.Errorf("%s: got the hooks %v and %v", tc.reason, out.Hooks, err)
			case tc.warning != "" && !slices.ContainsFunc(out.Warnings, func(w string) bool { return strings.Contains(w, tc.warning) }):
				t.Errorf("%s: got the warnings %q, want one that says %q", tc.reason, out.Warnings, tc.warning)
			}
		})
	}
	t.Run("native", func(t *testing.T) {
		t.Parallel()
		if _, out, err := render1(t, scriptsOf("          instantiate_end: setup\n"), nil); err != nil || len(out.Hooks) > 0 {
			t.Errorf("without a flavor nothing of the descriptor applies, got %v and %v", out.Hooks, err)
		}
		got, err := newRenderer().Check(t.Context(), held(scriptsOf("          instantiate_end: setup\n")))
		if err != nil || !slices.ContainsFunc(got.Variables, func(v nf.Variable) bool { return v.Name == nf.ScriptImageParameter }) {
			t.Errorf("the package does not tell its parameter: %+v, %v", got.Variables, err)
		}
	})
}
