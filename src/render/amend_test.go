package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// planned is an object of a plan; its value distinguishes it from others.
func planned(kind, name, value string) render.Planned {
	return render.Planned{Wait: render.WaitReady, Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, "value": value,
	}}}
}

func stage(name string, objects ...render.Planned) render.Stage {
	return render.Stage{Name: name, Objects: objects}
}

// values returns what a plan holds: stage/kind name=value.
func values(p render.Plan) (out []string) {
	for i, u := range p.Objects() {
		value, _ := u.Object["value"].(string)
		out = append(out, p.Stages[i].Name+"/"+u.GetKind()+" "+u.GetName()+"="+value)
	}
	return out
}

func TestAmend(t *testing.T) {
	t.Parallel()
	base := render.Plan{Namespace: "ns", Stages: []render.Stage{
		stage("first", planned("ConfigMap", "a", "0"), planned("Secret", "a", "0")), stage("second", planned("ConfigMap", "b", "0")),
	}}
	one := render.Plan{Stages: []render.Stage{stage("x", planned("ConfigMap", "a", "1"), planned("ConfigMap", "c", "1"))}}
	two := render.Plan{Stages: []render.Stage{stage("y", planned("ConfigMap", "c", "2")), stage("z", planned("ConfigMap", "a", "2"))}, Warnings: []string{"odd"}}
	named := planned("ConfigMap", "a", "3")
	named.Object.SetNamespace("ns")
	cases := map[string]struct {
		reason string
		plan   render.Plan
		want   []string
	}{
		"None":      {"without an amendment a plan is what it was", base, []string{"first/ConfigMap a=0", "first/Secret a=0", "second/ConfigMap b=0"}},
		"One":       {"what is there is replaced in its place, what is new comes last", base.Amend("one", one), []string{"first/ConfigMap a=1", "first/Secret a=0", "second/ConfigMap b=0", "one: x/ConfigMap c=1"}},
		"Two":       {"of two the later decides", base.Amend("one", one).Amend("two", two), []string{"first/ConfigMap a=2", "first/Secret a=0", "second/ConfigMap b=0", "one: x/ConfigMap c=2"}},
		"Namespace": {"an object without a namespace is in the plan's", base.Amend("n", render.Plan{Stages: []render.Stage{stage("n", named)}}), []string{"first/ConfigMap a=3", "first/Secret a=0", "second/ConfigMap b=0"}},
		"Back":      {"and all of it can be taken off again", base.Amend("one", one).Amend("two", two).Unamended(), []string{"first/ConfigMap a=0", "first/Secret a=0", "second/ConfigMap b=0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, values(tc.plan)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			encoded, err := render.Encode(tc.plan)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := render.Decode(encoded)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(values(base), values(kept.Unamended())); diff != "" {
				t.Errorf("%s: what a plan was amended from is kept with it (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"first/ConfigMap a=0", "first/Secret a=0", "second/ConfigMap b=0"}, values(base)); diff != "" {
		t.Errorf("to amend a plan leaves the plan as it was (-want +got)\n%s", diff)
	}
}

func TestOrderHooks(t *testing.T) {
	t.Parallel()
	hook := func(kind, name string, weight int, events ...nf.HookEvent) render.Hook {
		return render.Hook{Object: render.Object{Unstructured: planned(kind, name, "").Object}, Weight: weight, Events: events}
	}
	plan := render.Plan{Hooks: render.OrderHooks([]render.Hook{
		hook("Job", "migrate", 0, nf.PreInstall, nf.PreUpgrade), hook("ServiceAccount", "migrate", 0, nf.PreInstall),
		hook("Job", "last", 5, nf.PreInstall), hook("Job", "first", -5, nf.PreInstall), hook("Job", "after", 0, nf.PostInstall),
		hook("ExternalSecret", "db", 0, nf.PreInstall),
	})}
	cases := map[string]struct {
		reason string
		event  nf.HookEvent
		want   []string
	}{
		"Weights": {"by weight, then by name, then by what others need", nf.PreInstall, []string{"Job first", "ExternalSecret db", "ServiceAccount migrate", "Job migrate", "Job last"}},
		"Several": {"a hook may have several events", nf.PreUpgrade, []string{"Job migrate"}},
		"None":    {"and most events have none", nf.PostDelete, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, h := range plan.HooksOf(tc.event) {
				got = append(got, h.Object.GetKind()+" "+h.Object.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
	encoded, err := render.Encode(plan)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := render.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan.Hooks, kept.Hooks); diff != "" {
		t.Errorf("hooks are kept with the plan (-want +got)\n%s", diff)
	}
}

func TestDiscards(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		given  []render.Discard
		want   []render.Discard
	}{
		"Default": {"what says nothing goes before the next", nil, []render.Discard{render.DiscardBefore}},
		"Said":    {"what says something means it", []render.Discard{render.DiscardSuccess}, []render.Discard{render.DiscardSuccess}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []render.Discard
			for _, d := range []render.Discard{render.DiscardBefore, render.DiscardSuccess, render.DiscardFailure} {
				if (render.Planned{Discard: tc.given}).Discards(d) {
					got = append(got, d)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOwnWithLabels(t *testing.T) {
	t.Parallel()
	deployment := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a", "labels": map[string]any{"own": "1"}},
			"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{}}},
		}}
	}
	owned := deployment()
	render.Own(owned, nf.Subject{Kind: nf.InstanceSubject, ID: "me"}, map[string]string{"more": "2", "k8splugin.io/rb-instance-id": "somebody else"})
	template := map[string]any{"k8splugin.io/rb-instance-id": "me", "more": "2"}
	labels, _, _ := unstructured.NestedMap(owned.Object, "spec", "template", "metadata", "labels")
	if diff := cmp.Diff(template, labels); diff != "" {
		t.Errorf("pods bear the labels, the owner's first of all (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"own": "1", "more": "2", "k8splugin.io/rb-instance-id": "me"}, owned.GetLabels()); diff != "" {
		t.Errorf("so does the object (-want +got)\n%s", diff)
	}
	network := deployment()
	network.SetLabels(map[string]string{nf.OwnerLabel: "me"})
	render.Own(network, nf.Subject{Kind: "network", ID: "net"}, map[string]string{nf.OwnerLabel: "me"})
	if diff := cmp.Diff(map[string]string{nf.SubjectLabel: "network.net"}, network.GetLabels()); diff != "" {
		t.Errorf("the object of a network does not pose as an instance's (-want +got)\n%s", diff)
	}
	tagged := deployment()
	render.Tag(tagged, nf.Subject{Kind: nf.InstanceSubject, ID: "me"})
	if _, found, _ := unstructured.NestedMap(tagged.Object, "spec", "template", "metadata", "labels"); found || tagged.GetLabels()["k8splugin.io/rb-instance-id"] != "me" {
		t.Errorf("a tag is on the object alone: %v", tagged.Object)
	}
}

func TestOwnOfVirtualMachines(t *testing.T) {
	t.Parallel()
	vm := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"name": "fw"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"domain": map[string]any{"memory": "1Gi"}}}},
	}}
	render.Own(vm, nf.Subject{Kind: nf.InstanceSubject, ID: "me"}, nil)
	label, _, _ := unstructured.NestedString(vm.Object, "spec", "template", "metadata", "labels", "k8splugin.io/rb-instance-id")
	memory, _, _ := unstructured.NestedString(vm.Object, "spec", "template", "spec", "domain", "memory")
	if label != "me" || memory != "1Gi" {
		t.Errorf("the machine's pod is found by the label %q, and its template has become %v", label, vm.Object)
	}
}
