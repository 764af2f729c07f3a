package csar_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/csar/csartest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render/csar"
	"github.com/multicloud-k8s/k8splugin/src/render/rendertest"
)

// workloadOf returns the manifest of a workload with 5 pods.
func workloadOf(kind, name string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: %s}\nspec: {replicas: 5, selector: {matchLabels: {a: %s}}, template: {metadata: {labels: {a: %s}}, spec: {containers: [{name: c, image: i}]}}}\n", kind, name, name, name)
}

func autoscaler(kind, name string) string {
	return fmt.Sprintf("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: %s}\nspec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: %s, name: %s}}\n", name, kind, name)
}

func valuesChart() string {
	return string(rendertest.TarGz(map[string]string{
		"c/Chart.yaml":         "apiVersion: v2\nname: c\nversion: 0.1.0\n",
		"c/values.yaml":        "web: {replicas: 5, 'a.b': 0}\nport: 1\n",
		"c/templates/web.yaml": strings.Replace(workloadOf("Deployment", "web-{{ index .Values.web \"a.b\" }}-{{ .Values.port }}"), "replicas: 5", "replicas: {{ .Values.web.replicas }}", 1),
	}))
}

func TestRenderSized(t *testing.T) {
	t.Parallel()
	type params = map[string]any
	both := map[string]string{"Files/a.yaml": workloadOf("Deployment", "web"), "Files/b.yaml": workloadOf("StatefulSet", "db")}
	auto := map[string]string{"Files/a.yaml": workloadOf("Deployment", "web"), "Files/b.yaml": autoscaler("Deployment", "web")}
	other := map[string]string{"Files/a.yaml": workloadOf("Deployment", "web"), "Files/b.yaml": autoscaler("StatefulSet", "web")}
	daemons := map[string]string{"Files/a.yaml": strings.Replace(workloadOf("DaemonSet", "web"), "replicas: 5, ", "", 1)}
	custom := map[string]string{"Files/a.yaml": strings.Replace(workloadOf("MachineDeployment", "web"), "apps/v1", "cluster.x-k8s.io/v1beta2", 1)}
	charted := map[string]string{"Files/c-0.1.0.tgz": valuesChart()}
	cases := map[string]struct {
		reason string
		files  map[string]string
		params params
		want   []string // kind, name and pods of each workload
		wrong  string   // in the error
		warns  bool
	}{
		"None":    {"without a flavor, manifests are as they are", both, nil, []string{"Deployment web 5", "StatefulSet db 5"}, "", false},
		"Default": {"a flavor has its default level; a VDU without a number keeps its pods", both, params{"flavour_id": "simple"}, []string{"Deployment web 1", "StatefulSet db 5"}, "", false},
		"Level":   {"a level has its own numbers", both, params{"flavour_id": "simple", "instantiation_level_id": "instantiation_level_2"}, []string{"Deployment web 3", "StatefulSet db 5"}, "", false},
		"Only":    {"the only flavor need not be named", both, params{"instantiation_level_id": "instantiation_level_2"}, []string{"Deployment web 3", "StatefulSet db 5"}, "", false},
		"Scaled": {"a level of a scaling aspect replaces that of the instantiation level", both, params{"flavour_id": "simple", "scale_levels": params{"vdu1_aspect": 1.0}},
			[]string{"Deployment web 2", "StatefulSet db 5"}, "", false},
		"ScaledIn": {"also if it is lower", both, params{"instantiation_level_id": "instantiation_level_2", "scale_levels": params{"vdu1_aspect": 0}},
			[]string{"Deployment web 1", "StatefulSet db 5"}, "", false},
		"ScaledAlone": {"the only flavor need not be named", both, params{"scale_levels": params{"vdu1_aspect": 2}}, []string{"Deployment web 3", "StatefulSet db 5"}, "", false},
		"ScaledValue": {"the value of a chart gets the pods of the level", charted, params{
			"flavour_id": "simple", "scale_levels": params{"vdu1_aspect": 2}, "helm_value_names": params{"VDU1": params{"replica": "web.replicas"}},
		}, []string{"Deployment web-0-1 3"}, "", false},
		"ScaledOwned": {"an autoscaler still sets the pods of its workload", auto, params{"scale_levels": params{"vdu1_aspect": 2}}, []string{"Deployment web 5"}, "", false},
		"ScaledLike": {"a chart adds the name of the release; its own number is that of the instantiation", map[string]string{"Files/a.yaml": workloadOf("Deployment", "rel-web"), "Files/b.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"},
			params{"scale_levels": params{"vdu1_aspect": 2}}, []string{"Deployment rel-web 7"}, "", false},
		"ScaledTwo": {"the workload of the VDU is ambiguous", map[string]string{"Files/a.yaml": workloadOf("Deployment", "web-a"), "Files/b.yaml": workloadOf("Deployment", "web-b")},
			params{"scale_levels": params{"vdu1_aspect": 2}}, nil, `parameters.scale_levels: several workloads can be that of the VDU "VDU1"`, false},
		"ScaledNothing": {"pods that cannot be given are an error", daemons, params{"scale_levels": params{"vdu1_aspect": 2}}, nil, `parameters.scale_levels: no workload with replicas is named "web"`, false},
		"Aspect":        {"an unknown scaling aspect is an error", both, params{"scale_levels": params{"x": 1}}, nil, `parameters.scale_levels: "x" is not a scaling aspect`, false},
		"High":          {"and so is a level above the highest", both, params{"scale_levels": params{"vdu1_aspect": 3}}, nil, `parameters.scale_levels: 3 steps from level 0 lead out of the levels 0 to 2`, false},
		"Fraction":      {"a level is a whole number", both, params{"scale_levels": params{"vdu1_aspect": 1.5}}, nil, `parameters.scale_levels: the level of "vdu1_aspect" must be a whole number`, false},
		"Levels":        {"levels have aspects", both, params{"scale_levels": 1}, nil, "parameters.scale_levels: must be an object", false},
		"Owned":         {"an autoscaler of the package sets the pods of its workload", auto, params{"flavour_id": "simple"}, []string{"Deployment web 5"}, "", false},
		"Other":         {"and of no other", other, params{"flavour_id": "simple"}, []string{"Deployment web 1"}, "", false},
		"Daemons":       {"the nodes decide how many pods a DaemonSet has", daemons, params{"flavour_id": "simple"}, []string{"DaemonSet web <nil>"}, "", true},
		"Mapped": {"a request can name the workload of a VDU", both, params{"flavour_id": "simple", "vdu_mapping": params{"VDU1": params{"kind": "StatefulSet", "name": "db"}}},
			[]string{"Deployment web 5", "StatefulSet db 1"}, "", false},
		"MappedKind": {"of the kind that it names", both, params{"flavour_id": "simple", "vdu_mapping": params{"VDU1": params{"kind": "Deployment", "name": "db"}}},
			[]string{"Deployment web 5", "StatefulSet db 5"}, "", true},
		"Custom": {"of any kind with replicas", custom, params{"flavour_id": "simple", "vdu_mapping": params{"VDU1": params{"kind": "MachineDeployment", "name": "web"}}},
			[]string{"MachineDeployment web 1"}, "", false},
		"CustomUnnamed": {"a kind that is not named may mean something else by its replicas", custom, params{"flavour_id": "simple"}, []string{"MachineDeployment web 5"}, "", true},
		"Flavor":        {"an unknown flavor is an error", both, params{"flavour_id": "complex"}, nil, `parameters.flavour_id: "complex" is not a flavor of the VNF descriptor; it has "simple"`, false},
		"Unknown":       {"and so is an unknown level", both, params{"instantiation_level_id": "x"}, nil, `parameters.instantiation_level_id: "x" is not a level`, false},
		"Number":        {"a flavor is a text", both, params{"flavour_id": 1.0}, nil, "parameters.flavour_id: must be a text", false},
		"Mapping":       {"a mapping has VDUs", both, params{"flavour_id": "simple", "vdu_mapping": params{"VDU9": params{"name": "a"}}}, nil, `parameters.vdu_mapping: "VDU9" is not a VDU`, false},
		"Nameless":      {"with names", both, params{"flavour_id": "simple", "vdu_mapping": params{"VDU1": params{"kind": "Deployment"}}}, nil, "must have the name", false},
		"Values": {"a chart gets values by their paths, and the pods of VDUs", charted, params{
			"flavour_id": "simple", "helm_parameters": params{"port": 8081, `web.a\.b`: 2}, "helm_value_names": params{"VDU1": params{"replica": "web.replicas"}},
		}, []string{"Deployment web-2-8081 1"}, "", false},
		"Plain":    {"values of a chart need no flavor", charted, params{"helm_parameters": params{"port": 8081}}, []string{"Deployment web-0-8081 5"}, "", false},
		"Flavors":  {"the pods of VDUs need one", charted, params{"helm_value_names": params{"VDU1": params{"replica": "web.replicas"}}}, nil, "helm_value_names: requires flavour_id", false},
		"Scalar":   {"a path leads through objects", charted, params{"port": 1, "helm_parameters": params{"port.a": 1}}, nil, "is not an object", false},
		"List":     {"not into lists", charted, params{"helm_parameters": params{"ports[0]": 1}}, nil, "not the path of a value", false},
		"NoObject": {"values by paths are an object", charted, params{"helm_parameters": "a=b"}, nil, "must be an object", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out, err := render1(t, csartest.Scaled(tc.files), tc.params)
			if tc.wrong != "" {
				if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%s: %v, want %q", tc.reason, err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, g := range out.Groups {
				for _, o := range g.Objects {
					if spec := o.Object["spec"].(map[string]any); spec["template"] != nil {
						got = append(got, fmt.Sprintf("%s %s %v", o.GetKind(), o.GetName(), spec["replicas"]))
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if (len(out.Warnings) > 0) != tc.warns {
				t.Errorf("%s: warnings %q", tc.reason, out.Warnings)
			}
		})
	}
}

// TestRenderLeavesParameters has parameters with objects that set changes.
func TestRenderLeavesParameters(t *testing.T) {
	t.Parallel()
	inner := map[string]any{"a.b": 1}
	_, _, err := render1(t, csartest.Scaled(map[string]string{"Files/c-0.1.0.tgz": valuesChart()}), map[string]any{"web": inner, "helm_parameters": map[string]any{"web.replicas": 2}})
	if err != nil || len(inner) != 1 {
		t.Errorf("the parameters of the request became %v: %v", inner, err)
	}
}

func TestCheckDescribes(t *testing.T) {
	t.Parallel()
	for content, want := range map[string][]string{
		"Files/a.yaml":      {nf.FlavorParameter, nf.LevelParameter, nf.ScaleParameter, csar.MappingParameter},
		"Files/c-0.1.0.tgz": {"port", "web", nf.FlavorParameter, nf.LevelParameter, nf.ScaleParameter, csar.MappingParameter, csar.HelmNamesParameter},
	} {
		got, err := newRenderer().Check(t.Context(), held(csartest.Scaled(map[string]string{content: map[string]string{"Files/a.yaml": configMap, "Files/c-0.1.0.tgz": valuesChart()}[content]})))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, v := range got.Variables {
			names = append(names, v.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: the parameters (-want +got):\n%s", content, diff)
		}
	}
	broken := csartest.Described("tosca_definitions_version: tosca_simple_yaml_1_2\nimports: [types.yaml]\ntopology_template:\n  node_templates:\n    V: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: []}}\n", map[string]string{"Files/a.yaml": configMap})
	got, err := newRenderer().Check(t.Context(), held(broken))
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "Definitions/df_simple.yaml:5: name must be a text") {
		t.Errorf("a descriptor with a fault: %v, warnings %q", err, got.Warnings)
	}
}

// containers is a flavor whose VDU is a container.
const containers = `tosca_definitions_version: tosca_simple_yaml_1_3
imports: [types.yaml]
topology_template:
  substitution_mappings: {node_type: example.VNF, properties: {flavour_id: simple}}
  node_templates:
    VDU1:
      type: tosca.nodes.nfv.Vdu.OsContainerDeployableUnit
      properties: {name: web, mcio_identification_data: {name: web, type: Deployment}}
      requirements: [container: C]
    C:
      type: tosca.nodes.nfv.Vdu.OsContainer
      properties: {name: c}
      artifacts: {sw_image: {type: tosca.artifacts.nfv.SwImage, file: "registry.example.com/a:1$0"}}
    CP:
      type: tosca.nodes.nfv.VduCp
      properties: {layer_protocols: [ipv4], order: 1}
      requirements: [virtual_binding: VDU1, virtual_link: inner]
    inner: {type: tosca.nodes.nfv.VnfVirtualLink}
  policies:
    - l: {type: tosca.policies.nfv.InstantiationLevels, properties: {levels: {low: {}, high: {}}, default_level: low}}
    - n:
        type: tosca.policies.nfv.VduInstantiationLevels
        properties: {levels: {low: {number_of_instances: 1}, high: {number_of_instances: 4}}}
        targets: [VDU1]
`

func TestRenderTranslated(t *testing.T) {
	t.Parallel()
	plain := strings.Replace(containers, "1$0", "10", 1)
	files := csartest.Described(plain, nil)
	for level, pods := range map[string]int64{"": 1, "high": 4} {
		_, out, err := render1(t, files, map[string]any{"instantiation_level_id": level})
		if err != nil {
			t.Fatal(err)
		}
		o := out.Groups[0].Objects[0]
		if got := o.Object["spec"].(map[string]any)["replicas"]; o.GetKind() != "Deployment" || o.GetName() != "web" || got != pods {
			t.Errorf("level %q: %s %s with %v pods, want %d", level, o.GetKind(), o.GetName(), got, pods)
		}
		if n := out.Networks; len(n) != 1 || n[0].Network != "inner" || n[0].Workload != "Deployment/web" || n[0].Interface != "net1" {
			t.Errorf("networks %+v", out.Networks)
		}
	}
	summary, err := newRenderer().Check(t.Context(), held(files))
	if err != nil || len(summary.Warnings) > 0 {
		t.Errorf("a descriptor that can be translated: %v, warnings %q", err, summary.Warnings)
	}
	machine := csartest.Scaled(nil)
	_, _, err = render1(t, machine, nil)
	if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), "no artifact of the CSAR") || !strings.Contains(err.Error(), `Definitions/df_simple.yaml:8: the VDU "VDU1" is not a container`) {
		t.Errorf("a descriptor of virtual machines: %v", err)
	}
	summary, err = newRenderer().Check(t.Context(), held(machine))
	if err != nil || len(summary.Warnings) != 3 || !strings.HasPrefix(summary.Warnings[0], `flavor "simple": Definitions/df_simple.yaml:8: `) {
		t.Errorf("a descriptor of virtual machines: %v, warnings %q", err, summary.Warnings)
	}
	_, _, err = render1(t, files, map[string]any{csar.FilesParameter: []any{}})
	if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), csar.FilesParameter) {
		t.Errorf("no manifest among none: %v", err)
	}
	_, _, err = render1(t, csartest.Described(containers, nil), nil)
	if nf.KindOf(err) != nf.Invalid || !strings.Contains(err.Error(), "the image") {
		t.Errorf("an image that is none: %v", err)
	}
}
