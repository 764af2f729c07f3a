package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// object makes one of "apiVersion Kind name" or "apiVersion Kind namespace/name".
func object(t *testing.T, text string) render.Object {
	t.Helper()
	words := strings.Fields(text)
	if len(words) != 3 {
		t.Fatalf("not an object: %q", text)
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(words[0])
	u.SetKind(words[1])
	namespace, name, found := strings.Cut(words[2], "/")
	if !found {
		namespace, name = "", namespace
	}
	u.SetName(name)
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	return render.Object{Unstructured: u, File: name + ".yaml", Line: len(text)}
}

// group makes one of "name: object; object".
func group(t *testing.T, text string, after ...string) render.Group {
	t.Helper()
	name, list, _ := strings.Cut(text, ":")
	g := render.Group{Name: name, After: after}
	for o := range strings.SplitSeq(list, ";") {
		if strings.TrimSpace(o) != "" {
			g.Objects = append(g.Objects, object(t, o))
		}
	}
	return g
}

// describe writes a plan as one line for a stage.
func describe(p render.Plan) []string {
	var lines []string
	for _, s := range p.Stages {
		line := s.Name + ":"
		for _, o := range s.Objects {
			line += " " + o.Object.GetName() + "=" + string(o.Wait)
		}
		if s.Timeout > 0 {
			line += " within " + s.Timeout.String()
		}
		lines = append(lines, line)
	}
	return lines
}

func TestOrder(t *testing.T) {
	with := func(g render.Group, w render.Wait, timeout time.Duration) render.Group {
		g.Wait, g.Timeout = w, timeout
		return g
	}
	const crd = "apiextensions.k8s.io/v1 CustomResourceDefinition "
	cases := map[string]struct {
		reason string
		groups []render.Group
		want   []string
	}{
		"nothing": {"no groups, no stages", nil, nil},
		"chain": {
			"one after the other",
			[]render.Group{group(t, "a: v1 Secret s"), group(t, "b: apps/v1 Deployment d", "a")},
			[]string{"a: s=ready", "b: d=ready"},
		},
		"forward": {
			"the order of the list does not bind",
			[]render.Group{group(t, "a: v1 Secret s", "b"), group(t, "b: apps/v1 Deployment d")},
			[]string{"b: d=ready", "a: s=ready"},
		},
		"merged": {
			"what can go together goes together, each with its own wait; no timeout is the longest",
			[]render.Group{
				with(group(t, "a: v1 Secret s"), render.WaitApplied, time.Minute),
				with(group(t, "b: v1 Secret t; v1 Secret u"), "", 0),
				with(group(t, "c: v1 Secret v", "b"), render.WaitReady, time.Minute),
				with(group(t, "d: v1 Secret w", "a"), "", time.Second),
			},
			[]string{"a, b: s=applied t=ready u=ready", "c, d: v=ready w=ready within 1m0s"},
		},
		"diamond": {
			"a group is above all that it waits for",
			[]render.Group{
				group(t, "a: v1 Secret a"), group(t, "b: v1 Secret b", "a"), group(t, "c: v1 Secret c", "b"),
				group(t, "d: v1 Secret d", "a", "c"), group(t, "e: v1 Secret e", "a"),
			},
			[]string{"a: a=ready", "b, e: b=ready e=ready", "c: c=ready", "d: d=ready"},
		},
		"empty": {
			"a group without objects orders, but is no stage",
			[]render.Group{group(t, "a: v1 Secret a"), group(t, "b:", "a"), group(t, "c: v1 Secret c", "b")},
			[]string{"a: a=ready", "c: c=ready"},
		},
		"definitions": {
			"definitions go first, and are waited for whatever the group says",
			[]render.Group{
				with(group(t, "a: x/v1 Y y; "+crd+"ys.x; v1 Namespace n"), render.WaitApplied, time.Minute), group(t, "b: v1 Secret s"),
			},
			[]string{"a (definitions): n=ready ys.x=ready within 1m0s", "a, b: s=ready y=applied"},
		},
		"definitions alone": {
			"definitions alone are a stage like others",
			[]render.Group{with(group(t, "a: "+crd+"ys.x"), render.WaitApplied, 0), group(t, "b: v1 Namespace n")},
			[]string{"a, b: n=ready ys.x=applied"},
		},
		"prerequisites": {
			"pods are refused without them",
			[]render.Group{
				group(t, "a: apps/v1 Deployment d; v1 ServiceAccount s; v1 ResourceQuota q; v1 LimitRange l"),
				group(t, "b: storage.k8s.io/v1 StorageClass c; v1 Namespace n"),
				group(t, "c: scheduling.k8s.io/v1 PriorityClass p; node.k8s.io/v1 RuntimeClass r; v1 Secret t"),
			},
			[]string{"b (definitions): n=ready", "a, b, c (prerequisites): p=applied r=applied c=applied q=applied l=applied s=applied", "a, c: t=ready d=ready"},
		},
		"prerequisites alone": {
			"without workloads there is nothing to be in time for",
			[]render.Group{group(t, "a: v1 ServiceAccount s; v1 Secret t; example.com/v1 Deployment d")},
			[]string{"a: s=ready t=ready d=ready"},
		},
		"claims": {
			"a claim may stay pending until a later pod uses it, unless the author knows better",
			[]render.Group{
				group(t, "a: v1 PersistentVolumeClaim p; v1 Secret s"),
				with(group(t, "b: v1 PersistentVolumeClaim q"), render.WaitReady, 0),
			},
			[]string{"a, b: s=ready p=applied q=ready"},
		},
		"many": {
			"a stage's name stays readable",
			[]render.Group{
				group(t, "a: v1 Secret a"), group(t, "b: v1 Secret b"), group(t, "c: v1 Secret c"),
				group(t, "d: v1 Secret d"), group(t, "e: v1 Secret e"), group(t, "f: v1 Secret f"),
			},
			[]string{"a, b, c, d and 2 more: a=ready b=ready c=ready d=ready e=ready f=ready"},
		},
		"same name": {
			"other kinds, groups and namespaces are other objects",
			[]render.Group{group(t, "a: v1 Secret x; v1 ConfigMap x; a/v1 Secret x; v1 Secret other/x")},
			[]string{"a: x=ready x=ready x=ready x=ready"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, err := render.Order(tc.groups, "default")
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, describe(plan)); diff != "" || plan.Namespace != "default" {
				t.Errorf("%s: namespace %q (-want +got):\n%s", tc.reason, plan.Namespace, diff)
			}
		})
	}
}

func TestOrderRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		groups []render.Group
		want   nf.Violations
	}{
		"cycle": {
			"a circle is shown, without what leads to it",
			[]render.Group{group(t, "x:", "a"), group(t, "a:", "b"), group(t, "b:", "c"), group(t, "c:", "a")},
			nf.Violations{{Message: "dependency cycle: a → b → c → a"}},
		},
		"placed": {
			"it is where an entry of it is",
			[]render.Group{{Name: "a", File: "metadata.yaml", Line: 3, After: []string{"b"}}, {Name: "b", File: "metadata.yaml", Line: 5, After: []string{"a"}}},
			nf.Violations{{File: "metadata.yaml", Line: 3, Message: "dependency cycle: a → b → a"}},
		},
		"itself":    {"so is the smallest", []render.Group{group(t, "a:", "a")}, nf.Violations{{Message: "dependency cycle: a → a"}}},
		"unknown":   {"names must exist", []render.Group{group(t, "a:", "b")}, nf.Violations{{Message: `entry "a" depends on "b", which does not exist`}}},
		"same name": {"names are unique", []render.Group{group(t, "a:"), group(t, "a:")}, nf.Violations{{Message: `two entries are named "a"`}}},
		"twice": {
			"an object is there once; the plan's namespace is the default, the version is no difference",
			[]render.Group{group(t, "a: v1 Secret x; apps/v1 Deployment d"), group(t, "b: apps/v1beta1 Deployment d; v1 Secret default/x")},
			nf.Violations{
				{File: "d.yaml", Line: 26, Message: `Deployment "d" already exists, at d.yaml:21`},
				{File: "x.yaml", Line: 20, Message: `Secret "x" already exists, at x.yaml:12`},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := render.Order(tc.groups, "default")
			if diff := cmp.Diff(tc.want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: %v error (-want +got):\n%s", tc.reason, nf.KindOf(err), diff)
			}
		})
	}
}

func TestRecreate(t *testing.T) {
	annotated := func(o render.Object, value any) render.Object {
		metadata := o.Object["metadata"].(map[string]any)
		metadata["annotations"] = map[string]any{render.RecreateAnnotation: value, "other": 1}
		return o
	}
	set := func(whenDeleted string) render.Object {
		o := object(t, "apps/v1 StatefulSet s")
		o.Object["spec"] = map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": whenDeleted}}
		return o
	}
	cases := map[string]struct {
		reason string
		group  render.Recreate
		object render.Object
		want   bool
		fault  string
	}{
		"default":    {"nothing is recreated unasked", "", object(t, "batch/v1 Job j"), false, ""},
		"group":      {"a group speaks for its objects", render.RecreateIfNeeded, object(t, "batch/v1 Job j"), true, ""},
		"object":     {"an object speaks for itself, whatever else is odd about its annotations", "", annotated(object(t, "batch/v1 Job j"), "ifNeeded"), true, ""},
		"never":      {"the annotation wins", render.RecreateIfNeeded, annotated(object(t, "batch/v1 Job j"), "never"), false, ""},
		"wins":       {"the annotation wins", render.RecreateNever, annotated(object(t, "batch/v1 Job j"), "ifNeeded"), true, ""},
		"spared":     {"what holds data can be left out", render.RecreateIfNeeded, annotated(object(t, "v1 PersistentVolumeClaim p"), "never"), false, ""},
		"stranger":   {"a kind is known by its group too", render.RecreateIfNeeded, object(t, "x/v1 PersistentVolumeClaim p"), true, ""},
		"word":       {"there are two policies", "always", object(t, "batch/v1 Job j"), false, "must be never or ifNeeded"},
		"annotation": {"there are two policies", "", annotated(object(t, "batch/v1 Job j"), ""), false, "must be never or ifNeeded"},
		"no text":    {"a policy is a text", "", annotated(object(t, "batch/v1 Job j"), true), false, "must be never or ifNeeded"},
		"claim":      {"data would be lost", render.RecreateIfNeeded, object(t, "v1 PersistentVolumeClaim p"), false, "ifNeeded of a PersistentVolumeClaim would destroy data"},
		"volume":     {"data would be lost", "", annotated(object(t, "v1 PersistentVolume p"), "ifNeeded"), false, "ifNeeded of a PersistentVolume would destroy data"},
		"set":        {"claims outlive their set", render.RecreateIfNeeded, set("Retain"), true, ""},
		"greedy set": {"unless it says otherwise", render.RecreateIfNeeded, set("Delete"), false, "ifNeeded of a StatefulSet would destroy data"},
		"namespace":  {"all that lives in it would be lost", render.RecreateIfNeeded, object(t, "v1 Namespace n"), false, "ifNeeded of a Namespace would destroy data"},
		"definition": {
			"all of its resources would be lost", render.RecreateIfNeeded, object(t, "apiextensions.k8s.io/v1 CustomResourceDefinition c"),
			false, "ifNeeded of a CustomResourceDefinition would destroy data",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, err := render.Order([]render.Group{{Name: "a", Objects: []render.Object{tc.object}, Recreate: tc.group}}, "ns")
			if tc.fault != "" {
				want := nf.Violations{{Field: "recreate", File: tc.object.File, Line: tc.object.Line, Message: tc.fault}}
				if diff := cmp.Diff(want, nf.ViolationsOf(err)); diff != "" || nf.KindOf(err) != nf.Invalid {
					t.Errorf("%s: %v error (-want +got):\n%s", tc.reason, nf.KindOf(err), diff)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if got := plan.Stages[0].Objects[0].Recreate; got != tc.want {
				t.Errorf("%s: may be recreated is %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestProtected(t *testing.T) {
	cases := map[string]struct {
		reason string
		kind   schema.GroupKind
		want   bool
	}{
		"claim":      {"data", schema.GroupKind{Kind: "PersistentVolumeClaim"}, true},
		"namespace":  {"all that lives in it", schema.GroupKind{Kind: "Namespace"}, true},
		"definition": {"all of its resources", schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, true},
		"stranger":   {"a kind is known by its group too", schema.GroupKind{Group: "x", Kind: "Namespace"}, false},
		"core":       {"and by the want of one", schema.GroupKind{Kind: "CustomResourceDefinition"}, false},
		"cluster":    {"what runs in it is lost with its machines", schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}, true},
		"workload":   {"what can be made again is not protected", schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := render.Protected(tc.kind); got != tc.want {
				t.Errorf("%s: protected is %v", tc.reason, got)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	plan, err := render.Order([]render.Group{group(t, "a: v1 Secret s; v1 Secret t"), group(t, "b: v1 Secret u", "a")}, "ns")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, o := range plan.Objects() {
		got = append(got, fmt.Sprint(i, o.GetName()))
	}
	if diff := cmp.Diff([]string{"0s", "0t", "1u"}, got); diff != "" {
		t.Errorf("all objects, with their stage (-want +got):\n%s", diff)
	}
	for range plan.Objects() {
		break // must not panic
	}
}

func TestKindOrder(t *testing.T) {
	got := []string{"Zebra", "validatingwebhookconfiguration", "Deployment", "apiservice", "antelope", "CustomResourceDefinition", "Service", "namespace", "ConfigMap"}
	slices.SortFunc(got, render.KindOrder)
	want := []string{"namespace", "CustomResourceDefinition", "ConfigMap", "Service", "Deployment", "antelope", "Zebra", "apiservice", "validatingwebhookconfiguration"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions, what is referred to, workloads, custom resources, interceptors (-want +got):\n%s", diff)
	}
}

func TestDeletionTurn(t *testing.T) {
	cases := map[string]struct {
		reason  string
		kind    schema.GroupKind
		turn    int
		settles bool
	}{
		"Cluster":        {"it is deleted alone", schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}, 1, false},
		"OtherCluster":   {"kinds of that name in other groups are ordinary", schema.GroupKind{Group: "postgresql.cnpg.io", Kind: "Cluster"}, 0, false},
		"Infrastructure": {"an object of any provider belongs to a Cluster", schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "OpenStackCluster"}, 2, false},
		"Workers":        {"it belongs to a Cluster", schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "MachineDeployment"}, 2, false},
		"ControlPlane":   {"it belongs to a Cluster", schema.GroupKind{Group: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane"}, 2, false},
		"Add-ons":        {"they belong to a Cluster", schema.GroupKind{Group: "addons.cluster.x-k8s.io", Kind: "ClusterResourceSet"}, 2, false},
		"Template":       {"machines refer to it", schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "DevMachineTemplate"}, 0, true},
		"Bootstrap":      {"machines refer to it", schema.GroupKind{Group: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate"}, 0, true},
		"Class":          {"a Cluster refers to it", schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "ClusterClass"}, 0, true},
		"Identity":       {"the infrastructure is deleted with it", schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AzureClusterIdentity"}, 0, true},
		"Secret":         {"the infrastructure is deleted with it", schema.GroupKind{Kind: "Secret"}, 0, false},
		"Definition":     {"kinds go after their objects, by their stage", schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, 0, false},
	}
	for name, tc := range cases {
		if got := render.DeletionTurn(tc.kind); got != tc.turn {
			t.Errorf("%s: %s: turn %d, want %d", name, tc.reason, got, tc.turn)
		}
		if got := render.Settles(tc.kind); got != tc.settles {
			t.Errorf("%s: %s: settles %v, want %v", name, tc.reason, got, tc.settles)
		}
	}
}
