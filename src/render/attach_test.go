package render_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

const networksKey = "k8s.v1.cni.cncf.io/networks"

// planOf returns a plan of one stage with objects written in YAML.
func planOf(t testing.TB, objects ...string) render.Plan {
	t.Helper()
	stage := render.Stage{Name: "all"}
	for _, text := range objects {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		stage.Objects = append(stage.Objects, render.Planned{Object: u, File: "m.yaml", Line: 7})
	}
	return render.Plan{Namespace: "ns", Stages: []render.Stage{stage}}
}

// workload returns a workload in YAML, with the annotations and containers of its
// pods.
func workload(kind, name, rest string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: %s, metadata: {name: %s}, spec: {%s}}`, kind, name, rest)
}

// wantedOf returns attachments as a request has them.
func wantedOf(attachments ...nf.Attachment) (out []nf.Connection) {
	for i, a := range attachments {
		out = append(out, nf.Connection{Attachment: a, At: nf.Place{Field: fmt.Sprintf("networks[%d]", i)}})
	}
	return out
}

// connect connects as a driver does. The network "sriov" takes a resource, and
// "none" cannot be attached to.
func connect(a nf.Attachment, w render.Workload) (nf.Connection, error) {
	c := nf.Connection{Attachment: a, Selection: map[string]any{"name": a.Network, "namespace": "networks"}}
	switch {
	case a.Network == "none":
		return c, nf.Violations{{Field: "ips[0]", Message: "is wrong"}, {Message: "is not possible"}}
	case len(a.IPs) > 0 && w.Replicas != 1:
		return c, nf.Violations{{Field: "ips", Message: fmt.Sprintf("has %d pods", w.Replicas)}}
	case a.Network == "sriov":
		c.Resources = map[string]int64{"intel.com/sriov": 1}
	case a.Network == "noted":
		c.Annotations = map[string]string{"ovn.kubernetes.io/ip": "1"}
	case a.Network == "kube-ovn" && len(a.IPs) > 0:
		c.Annotations, c.Annotated = map[string]string{"k.ovn.kubernetes.io/ip_address": a.IPs[0]}, true
		return c, nil
	}
	if len(a.IPs) > 0 {
		c.Selection["ips"] = a.IPs
	}
	if a.MAC != "" {
		c.Selection["mac"] = a.MAC
	}
	return c, nil
}

// annotationOf returns the networks of the pods of an object of a plan.
func annotationOf(t testing.TB, p render.Plan, i int, path ...string) string {
	t.Helper()
	text, _, err := unstructured.NestedString(p.Stages[0].Objects[i].Object.Object, append(path, "metadata", "annotations", networksKey)...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const template = `template: {metadata: {}, spec: {containers: [{name: c}]}}`

// TestAttach compares the annotation of one Deployment.
func TestAttach(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason      string
		annotation  string // of the package
		attachments []nf.Attachment
		want        string
	}{
		"New":       {"a pod without networks gets some", ``, []nf.Attachment{{Network: "a"}, {Network: "b", Interface: "oam"}}, `[{"interface":"net1","name":"a","namespace":"networks"},{"interface":"oam","name":"b","namespace":"networks"}]`},
		"Short":     {"the short form stays in front", `x, other/y@net9`, []nf.Attachment{{Network: "a"}}, `[{"name":"x"},{"interface":"net9","name":"y","namespace":"other"},{"interface":"net3","name":"a","namespace":"networks"}]`},
		"JSON":      {"JSON stays in front, with keys and numbers that are not known", `[{"name": "x", "example.com/z": {"n": 1.50}, "mac": "<m>"}]`, []nf.Attachment{{Network: "a"}}, `[{"example.com/z":{"n":1.50},"mac":"<m>","name":"x"},{"interface":"net2","name":"a","namespace":"networks"}]`},
		"Position":  {"a position that is taken is passed over", `x@net2`, []nf.Attachment{{Network: "a"}, {Network: "b"}}, `[{"interface":"net2","name":"x"},{"interface":"net3","name":"a","namespace":"networks"},{"interface":"net4","name":"b","namespace":"networks"}]`},
		"Reserved":  {"a name that another attachment asks for is passed over", ``, []nf.Attachment{{Network: "a"}, {Network: "b", Interface: "net1"}}, `[{"interface":"net2","name":"a","namespace":"networks"},{"interface":"net1","name":"b","namespace":"networks"}]`},
		"Same":      {"the same network on the same interface is left", `networks/a@oam`, []nf.Attachment{{Network: "a", Interface: "oam"}}, `[{"interface":"oam","name":"a","namespace":"networks"}]`},
		"Implicit":  {"an interface can be that of its position", `networks/a`, []nf.Attachment{{Network: "a", Interface: "net1"}}, `[{"name":"a","namespace":"networks"}]`},
		"Any":       {"without an interface, any attachment to the network counts", `x, networks/a@oam`, []nf.Attachment{{Network: "a"}}, `[{"name":"x"},{"interface":"oam","name":"a","namespace":"networks"}]`},
		"Settings":  {"one with other settings is another attachment", `networks/a`, []nf.Attachment{{Network: "a", IPs: []string{"10.0.0.9/24"}}}, `[{"name":"a","namespace":"networks"},{"interface":"net2","ips":["10.0.0.9/24"],"name":"a","namespace":"networks"}]`},
		"More":      {"one with more settings has ours", `[{"name": "a", "namespace": "networks", "mac": "02:00:00:00:00:01"}]`, []nf.Attachment{{Network: "a"}}, `[{"mac":"02:00:00:00:00:01","name":"a","namespace":"networks"}]`},
		"Twice":     {"a network can be attached twice", ``, []nf.Attachment{{Network: "a"}, {Network: "a"}}, `[{"interface":"net1","name":"a","namespace":"networks"},{"interface":"net2","name":"a","namespace":"networks"}]`},
		"Namespace": {"a network of another namespace is another one", `a`, []nf.Attachment{{Network: "a"}}, `[{"name":"a"},{"interface":"net2","name":"a","namespace":"networks"}]`},
		"Nothing":   {"without attachments, the form stays", `x`, nil, `x`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planOf(t, workload("Deployment", "web", template))
			if tc.annotation != "" {
				set := map[string]any{networksKey: tc.annotation}
				if err := unstructured.SetNestedField(p.Stages[0].Objects[0].Object.Object, set, "spec", "template", "metadata", "annotations"); err != nil {
					t.Fatal(err)
				}
			}
			got, err := p.Attach(wantedOf(tc.attachments...), connect)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, annotationOf(t, got, 0, "spec", "template")); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.annotation, annotationOf(t, p, 0, "spec", "template")); diff != "" {
				t.Errorf("the plan itself has changed (-want +got)\n%s", diff)
			}
		})
	}
}

// TestAttachTargets names the workloads that attachments select, and their
// numbers of pods.
func TestAttachTargets(t *testing.T) {
	t.Parallel()
	everything := []string{
		`{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{}]}}`,
		workload("Deployment", "web", template),
		workload("StatefulSet", "db", `replicas: 3, `+template),
		workload("DaemonSet", "agent", template),
		workload("ReplicaSet", "set", `replicas: 0, `+template),
		`{apiVersion: v1, kind: ReplicationController, metadata: {name: old}, spec: {template: {}}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {template: {}}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: jobs}, spec: {parallelism: 3, completions: 2, template: {}}}`,
		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron}, spec: {jobTemplate: {spec: {template: {}}}}}`,
		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: single}, spec: {concurrencyPolicy: Forbid, jobTemplate: {spec: {template: {}}}}}`,
		`{apiVersion: example.com/v1, kind: Rollout, metadata: {name: custom}, spec: {template: {spec: {containers: [{}]}}}}`,
		`{apiVersion: example.com/v1, kind: Report, metadata: {name: form}, spec: {template: {spec: {text: x}}}}`,
		`{apiVersion: v1, kind: PodTemplate, metadata: {name: template}, template: {spec: {containers: [{}]}}}`,
		workload("Deployment", "auto", template),
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: auto}, spec: {scaleTargetRef: {kind: Deployment, name: auto}}}`,
		workload("StatefulSet", "web", template),
	}
	const all = `Pod/pod=1 Deployment/web=1 StatefulSet/db=3 DaemonSet/agent=-1 ReplicaSet/set=0 ReplicationController/old=1 Job/job=1 Job/jobs=2 CronJob/cron=-1 CronJob/single=1 Rollout/custom=-1 Deployment/auto=-1 StatefulSet/web=1`
	const names = `Pod/pod, Deployment/web, StatefulSet/db, DaemonSet/agent, ReplicaSet/set, ReplicationController/old, Job/job, Job/jobs, CronJob/cron, CronJob/single, Rollout/custom, Deployment/auto, StatefulSet/web`
	cases := map[string]struct {
		reason   string
		objects  []string
		selector string
		want     string
		fault    string
	}{
		"All":       {"every object with pods", everything, "*", all, ""},
		"Name":      {"a name is enough", everything, "db", "StatefulSet/db=3", ""},
		"Kind":      {"a kind tells two of one name apart", everything, "Deployment/web", "Deployment/web=1", ""},
		"Case":      {"the case of a kind does not matter", everything, "statefulset/web", "StatefulSet/web=1", ""},
		"Several":   {"an ambiguous name is rejected", everything, "web", "", `networks[0].workload: "web" names several objects: Deployment/web, StatefulSet/web`},
		"Unknown":   {"an unknown name is rejected", everything, "Deployment/db", "", `networks[0].workload: "Deployment/db" is not in the package; its objects with pods are ` + names},
		"Ambiguous": {"one of several must be named", everything, "", "", `networks[0].workload: is required: the package has several objects with pods: ` + names},
		"Only":      {"the only one need not be", everything[:1], "", "Pod/pod=1", ""},
		"None":      {"a package without pods has no interfaces", everything[11:12], "", "", `networks[0].workload: the package has no object with pods`},
		"NoneOfAll": {"also not for all", nil, "*", "", `networks[0].workload: the package has no object with pods`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			_, err := planOf(t, tc.objects...).Attach(wantedOf(nf.Attachment{Network: "a", Workload: tc.selector}), func(a nf.Attachment, w render.Workload) (nf.Connection, error) {
				asked = append(asked, fmt.Sprintf("%s=%d", w.Name(), w.Replicas))
				return connect(a, w)
			})
			if diff := cmp.Diff(tc.want, strings.Join(asked, " ")); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.fault, textOf(err)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAttachWrong lists attachments that cannot be made.
func TestAttachWrong(t *testing.T) {
	t.Parallel()
	deployment := func(annotation string) string {
		quoted, _ := json.Marshal(annotation)
		return workload("Deployment", "web", `template: {metadata: {annotations: {`+networksKey+`: `+string(quoted)+`}}, spec: {containers: [{}]}}`)
	}
	plain := workload("Deployment", "web", template)
	const place = `m.yaml:7: Deployment web: spec.template.metadata.annotations[` + networksKey + `]: `
	cases := map[string]struct {
		reason      string
		object      string
		attachments []nf.Attachment
		want        string
	}{
		"Eth0":      {"eth0 is the cluster network's", plain, []nf.Attachment{{Network: "a", Interface: "eth0"}}, `networks[0].interface: eth0 is the interface of the cluster network`},
		"Loopback":  {"lo is there already", plain, []nf.Attachment{{Network: "a", Interface: "lo"}}, `networks[0].interface: lo is the loopback interface`},
		"Pod":       {"KubeVirt has its own names", plain, []nf.Attachment{{Network: "a", Interface: "pod1"}}, `networks[0].interface: names that begin with pod are those of KubeVirt`},
		"Long":      {"the kernel has 15 characters", plain, []nf.Attachment{{Network: "a", Interface: "abcdefghijklmnop"}}, `networks[0].interface: "abcdefghijklmnop" is not the name of an interface: 1 to 15 lower-case letters, digits or '-', a letter or digit at both ends`},
		"Blank":     {"a name has no blank", plain, []nf.Attachment{{Network: "a", Interface: "a b"}}, `networks[0].interface: "a b" is not the name of an interface: 1 to 15 lower-case letters, digits or '-', a letter or digit at both ends`},
		"Clash":     {"an interface is of one network", deployment("x@oam"), []nf.Attachment{{Network: "a", Interface: "oam"}}, `networks[0].interface: oam of Deployment/web is attached to the network x already`},
		"ClashPos":  {"also by its position", deployment("x"), []nf.Attachment{{Network: "a", Interface: "net1"}}, `networks[0].interface: net1 of Deployment/web is attached to the network x already`},
		"ClashOwn":  {"also within a request", plain, []nf.Attachment{{Network: "a", Interface: "oam"}, {Network: "a", Interface: "oam"}}, `networks[1].interface: oam of Deployment/web is attached to the network a already`},
		"Settings":  {"the request is not ignored", deployment("networks/a@oam"), []nf.Attachment{{Network: "a", Interface: "oam", IPs: []string{"10.0.0.9/24"}}}, `networks[0].interface: oam of Deployment/web is attached to this network already, with other settings`},
		"Broken":    {"multus cannot read the annotation", deployment(`[{"name": "x"`), []nf.Attachment{{Network: "a"}}, place + `is not a list of networks in JSON: unexpected EOF`},
		"Object":    {"it is a list", deployment(`{"name": "x"}`), []nf.Attachment{{Network: "a"}}, place + `is not a list of networks in JSON: json: cannot unmarshal object into Go value of type []map[string]interface {}`},
		"Trailing":  {"it is one list", deployment(`[{"name": "x"}] y`), []nf.Attachment{{Network: "a"}}, place + `has text after the list of networks`},
		"Unnamed":   {"an element has a name", deployment(`[{}]`), []nf.Attachment{{Network: "a"}}, place + `element 0 has no name`},
		"Short":     {"a name has no capital", deployment("x,Y"), []nf.Attachment{{Network: "a"}}, place + `"Y" is not a network: it must have the form [NAMESPACE/]NAME[@INTERFACE]`},
		"TwiceThen": {"the package's own clash fails each pod", deployment("x@a, y@a"), []nf.Attachment{{Network: "a"}}, place + `two networks have the interface a`},
		"Template":  {"without a template there is no pod", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {}}`, []nf.Attachment{{Network: "a"}}, `m.yaml:7: Deployment web: spec.template: is not a template of pods`},
		"Container": {"a resource needs a container", workload("Deployment", "web", `template: {}`), []nf.Attachment{{Network: "sriov"}}, `m.yaml:7: Deployment web: spec.template.spec.containers: has no container that can request the resources of a network`},
		"Quantity":  {"a quantity is one", workload("Deployment", "web", `template: {spec: {containers: [{resources: {requests: {intel.com/sriov: two}}}]}}`), []nf.Attachment{{Network: "sriov"}}, `m.yaml:7: Deployment web: spec.template.spec.containers[0].resources.requests[intel.com/sriov]: two is not a quantity`},
		"Driver":    {"the fields of a driver are below the attachment's", plain, []nf.Attachment{{Network: "a"}, {Network: "none"}}, `networks[1].ips[0]: is wrong; networks[1]: is not possible`},
		"Several":   {"with several workloads, the message names the one", plain, []nf.Attachment{{Network: "none", Workload: "*"}, {Network: "none", Workload: "x"}}, `networks[0].ips[0]: is wrong; networks[0]: is not possible; networks[1].workload: "x" is not in the package; its objects with pods are Deployment/web`},
		"Replicas":  {"the driver knows the number of pods", workload("StatefulSet", "db", `replicas: 2, `+template), []nf.Attachment{{Network: "a", IPs: []string{"10.0.0.9/24"}}}, `networks[0].ips: has 2 pods`},
		"Annotated": {"an annotation of the package is not replaced", workload("Deployment", "web", `template: {metadata: {annotations: {ovn.kubernetes.io/ip: "2"}}}`), []nf.Attachment{{Network: "noted"}}, `networks[0]: Deployment/web has another value of the annotation ovn.kubernetes.io/ip`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := planOf(t, tc.object).Attach(wantedOf(tc.attachments...), connect)
			if diff := cmp.Diff(tc.want, textOf(err)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: the error is %s, want invalid", tc.reason, nf.KindOf(err))
			}
		})
	}
}

func TestAttachAll(t *testing.T) {
	t.Parallel()
	p := planOf(t, workload("StatefulSet", "a", template), workload("StatefulSet", "b", `replicas: 2, `+template))
	_, err := p.Attach(wantedOf(nf.Attachment{Network: "a", Workload: "*", IPs: []string{"10.0.0.9/24"}}), connect)
	if diff := cmp.Diff(`networks[0].ips: cannot be that of several workloads; select one of them`, textOf(err)); diff != "" {
		t.Errorf("several workloads would have the same address (-want +got)\n%s", diff)
	}
	_, err = p.Attach(wantedOf(nf.Attachment{Network: "a", Workload: "*"}), func(_ nf.Attachment, w render.Workload) (nf.Connection, error) {
		if w.Name() == "StatefulSet/b" {
			return nf.Connection{}, nf.Violations{{Field: "network", Message: "has 2 pods"}}
		}
		return nf.Connection{}, nil
	})
	if diff := cmp.Diff(`networks[0].network: StatefulSet/b: has 2 pods`, textOf(err)); diff != "" {
		t.Errorf("of several workloads, the message names the one (-want +got)\n%s", diff)
	}
	gone := errors.New("gone")
	_, err = p.Attach(wantedOf(nf.Attachment{Network: "a", Workload: "*"}), func(nf.Attachment, render.Workload) (nf.Connection, error) { return nf.Connection{}, gone })
	if !errors.Is(err, gone) {
		t.Errorf("got %v, want the error that the driver returns", err)
	}
}

// TestAttachPlaces checks where the annotation of each kind is, and what else
// changes.
func TestAttachPlaces(t *testing.T) {
	t.Parallel()
	const networks = `[{"interface":"net1","name":"noted","namespace":"networks"},{"interface":"net2","name":"sriov","namespace":"networks"},{"interface":"net3","name":"sriov","namespace":"networks"}]`
	metadata := `annotations: {ovn.kubernetes.io/ip: "1", ` + networksKey + `: '` + networks + `'}`
	cases := map[string]struct{ reason, in, want string }{
		"Pod": {
			"the annotation is the pod's own, and its first container takes both devices",
			`{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: b}}, spec: {containers: [{name: c}, {name: d}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: b}, ` + metadata + `}, spec: {containers: [{name: c, resources: {requests: {intel.com/sriov: "2"}, limits: {intel.com/sriov: "2"}}}, {name: d}]}}`,
		},
		"Deployment": {
			"the resources are added to those of the package",
			workload("Deployment", "web", `template: {spec: {containers: [{resources: {requests: {cpu: 1, intel.com/sriov: 3}, limits: {intel.com/sriov: "3"}}}]}}`),
			workload("Deployment", "web", `template: {metadata: {`+metadata+`}, spec: {containers: [{resources: {requests: {cpu: 1, intel.com/sriov: "5"}, limits: {intel.com/sriov: "5"}}}]}}`),
		},
		"Limits": {
			"a limit alone is a request, too",
			workload("DaemonSet", "web", `template: {spec: {containers: [{resources: {limits: {intel.com/sriov: "1"}}}]}}`),
			workload("DaemonSet", "web", `template: {metadata: {`+metadata+`}, spec: {containers: [{resources: {requests: {intel.com/sriov: "3"}, limits: {intel.com/sriov: "3"}}}]}}`),
		},
		"CronJob": {
			"the pods of a CronJob are two templates down",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{}]}}}}}}`,
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {jobTemplate: {spec: {template: {metadata: {` + metadata + `}, spec: {containers: [{resources: {requests: {intel.com/sriov: "2"}, limits: {intel.com/sriov: "2"}}}]}}}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted := wantedOf(nf.Attachment{Network: "noted"}, nf.Attachment{Network: "sriov"}, nf.Attachment{Network: "sriov"})
			got, err := planOf(t, tc.in).Attach(wanted, connect)
			if err != nil {
				t.Fatal(err)
			}
			again, err := got.Attach(wanted, connect)
			if err != nil {
				t.Fatal(err)
			}
			want := planOf(t, tc.want).Stages[0].Objects[0].Object.Object
			for _, p := range []render.Plan{got, again} {
				if diff := cmp.Diff(want, p.Stages[0].Objects[0].Object.Object); diff != "" {
					t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestAttachLeaves checks the objects that are not attached.
func TestAttachLeaves(t *testing.T) {
	t.Parallel()
	p := planOf(t, workload("Deployment", "web", template), workload("Deployment", "shared", template), `{apiVersion: v1, kind: Service, metadata: {name: web}}`)
	p.Stages[0].Objects[1].Shared = true
	p.Hooks = planOf(t, `{apiVersion: v1, kind: Pod, metadata: {name: hook}, spec: {containers: [{}]}}`).Stages[0].Objects
	got, err := p.Attach(wantedOf(nf.Attachment{Network: "a", Workload: "*"}), connect)
	if err != nil {
		t.Fatal(err)
	}
	if annotationOf(t, got, 0, "spec", "template") == "" {
		t.Error("the Deployment is not attached")
	}
	if got := annotationOf(t, got, 1, "spec", "template"); got != "" {
		t.Errorf("a shared object has the networks %s", got)
	}
	if got := got.Hooks[0].Object.GetAnnotations(); len(got) > 0 {
		t.Errorf("a hook has the annotations %v", got)
	}
}

func TestAttachWarns(t *testing.T) {
	t.Parallel()
	fixed := nf.Attachment{Network: "a", IPs: []string{"10.0.0.9/24"}}
	cases := map[string]struct {
		reason string
		object string
		a      nf.Attachment
		want   int
	}{
		"Rolling":  {"the new pod and the old one have one address", workload("Deployment", "web", template), fixed, 1},
		"Recreate": {"the old pod ends first", workload("Deployment", "web", `strategy: {type: Recreate}, `+template), fixed, 0},
		"NoSurge":  {"the same", workload("Deployment", "web", `strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}, `+template), fixed, 0},
		"Dynamic":  {"each pod has its own address", workload("Deployment", "web", template), nf.Attachment{Network: "a"}, 0},
		"Stateful": {"a StatefulSet ends the old pod first", workload("StatefulSet", "web", template), fixed, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := planOf(t, tc.object).Attach(wantedOf(tc.a), connect)
			if err == nil {
				got, err = got.Attach(wantedOf(tc.a), connect)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Warnings) != tc.want {
				t.Errorf("%s: got the warnings %q, want %d", tc.reason, got.Warnings, tc.want)
			}
		})
	}
}
