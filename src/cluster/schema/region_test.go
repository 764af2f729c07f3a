package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestExisting checks objects that the region has. What the checks say of them
// is compared with the API server.
func TestExisting(t *testing.T) {
	s := newServer(t)
	definition, gadget := own(t)
	s.define(definition)
	_ = unstructured.SetNestedField(gadget.Object, "gone", "spec", "frozen")
	if err := s.apply(gadget); err != nil {
		t.Fatal(err)
	}
	// The definition becomes stricter than the object that is there.
	levels, found, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if !found {
		t.Fatal("the definition has no versions")
	}
	properties := levels[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
	spec := properties["spec"].(map[string]any)["properties"].(map[string]any)
	spec["level"].(map[string]any)["enum"] = []any{int64(1), int64(3)}
	_ = unstructured.SetNestedSlice(definition.Object, levels, "spec", "versions")
	if err := s.apply(definition); err != nil {
		t.Fatal(err)
	}
	fresh := gadget.DeepCopy()
	fresh.SetName("fresh")
	for s.published = nil; len(s.check(NewCache(Config{}).Region(s), fresh).Violations) == 0; s.published = nil {
		t.Log("the server still publishes the former schema")
	}

	cases := map[string]struct {
		reason string
		change func(spec map[string]any)
		want   []string
	}{
		"unchanged": {"what a stricter schema forbids may stay as it is", func(map[string]any) {}, nil},
		"another value": {
			"a new value must fit the schema", func(spec map[string]any) { spec["level"] = int64(7) },
			[]string{"spec.level: must be one of 1, 3, got 7"},
		},
		"unknown field": {
			"no object has it", func(spec map[string]any) { spec["nam"] = "x" },
			[]string{`spec.nam: unknown field "nam" (did you mean "name"?)`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := gadget.DeepCopy()
			tc.change(u.Object["spec"].(map[string]any))
			result, err := NewCache(Config{}).Region(s).Check(t.Context(), []Object{{Unstructured: u, Exists: true}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), lines(result.Violations)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if err := s.dryRun(u); (err != nil) != (tc.want != nil) {
				t.Errorf("%s: the API server says %v", tc.reason, err)
			}
		})
	}

	t.Run("owned by others", func(t *testing.T) {
		const reason = "a required field may be there, set by another field manager"
		u := gadget.DeepCopy()
		u.Object["spec"] = map[string]any{"filled": "x"}
		if err := s.applyAs("another", u, "All"); err != nil {
			t.Fatalf("%s: the API server refuses it: %v", reason, err)
		}
		for exists, want := range map[bool][]string{true: {}, false: {"spec.name: is required"}} {
			result, err := NewCache(Config{}).Region(s).Check(t.Context(), []Object{{Unstructured: u, Resource: "gadgets", Exists: exists}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, lines(result.Violations)); diff != "" {
				t.Errorf("%s: exists %v: -want +got\n%s", reason, exists, diff)
			}
		}
	})
}

// TestMutating lets a policy of the API server add what an object lacks, and
// replace what is wrong.
func TestMutating(t *testing.T) {
	s := newServer(t)
	definition, gadget := own(t)
	s.define(definition)
	unstructured.RemoveNestedField(gadget.Object, "spec", "name")
	gadget.SetLabels(map[string]string{"fill": "name"})
	group := gadget.GroupVersionKind().Group

	wrong := gadget.DeepCopy()
	_ = unstructured.SetNestedField(wrong.Object, int64(9), "spec", "level")
	unknown := gadget.DeepCopy()
	_ = unstructured.SetNestedField(unknown.Object, "x", "spec", "nam")

	region := NewCache(Config{}).Region(s)
	required := []string{"spec.name: is required"}
	if diff := cmp.Diff(required, lines(s.check(region, gadget).Violations)); diff != "" {
		t.Errorf("nothing adds the name: -want +got\n%s", diff)
	}
	if err := s.dryRun(gadget); err == nil {
		t.Error("nothing adds the name, but the API server accepts the object")
	}
	name := strings.ReplaceAll(group, ".", "-")
	for _, u := range clustertest.Documents(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: `+name+`}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [`+group+`], apiVersions: ["*"], resources: [gadgets], operations: [CREATE, UPDATE]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{name: 'abc', level: 1}}"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: `+name+`}
spec: {policyName: `+name+`}
`) {
		if err := s.apply(u); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.remove(u); err != nil {
				t.Error(err)
			}
		})
	}
	for s.dryRun(gadget) != nil {
		t.Log("the policy is not yet in force")
	}
	if v := s.check(region, gadget).Violations; len(v) > 0 {
		t.Errorf("the policy adds the name, and the API server accepts the object, but found %v", v)
	}
	if err := s.dryRun(wrong); err != nil {
		t.Errorf("the policy replaces the level, but the API server says %v", err)
	}
	if v := s.check(region, wrong).Violations; len(v) > 0 {
		t.Errorf("the policy replaces the level, and the API server accepts the object, but found %v", v)
	}
	if s.dryRun(unknown) == nil {
		t.Error("the API server reads the object before the policy does, but accepts an unknown field")
	}
	if diff := cmp.Diff([]string{`spec.nam: unknown field "nam" (did you mean "name"?)`}, lines(s.check(region, unknown).Violations)); diff != "" {
		t.Errorf("no policy sees an unknown field: -want +got\n%s", diff)
	}
	other := clustertest.Documents(t, `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: a}, {port: 1}]}}`)[0]
	want := []string{"spec.ports[0].port: is required", "spec.ports[1].name: is required: the service has several ports"}
	if diff := cmp.Diff(want, lines(s.check(region, other).Violations)); diff != "" {
		t.Errorf("the policy matches no other kind: -want +got\n%s", diff)
	}
}

func TestMatcher(t *testing.T) {
	webhooks := func(rule string) []*unstructured.Unstructured {
		return clustertest.Documents(t, `{kind: MutatingWebhookConfiguration, apiVersion: v1, webhooks: [{rules: [`+rule+`]}]}`)
	}
	cases := map[string]struct {
		reason   string
		webhooks []*unstructured.Unstructured
		err      error
		want     bool
	}{
		"none":            {"nothing changes the object", nil, nil, false},
		"unreadable":      {"what cannot be read may change it", nil, nf.E(nf.Failed, "list", "webhooks", nil), true},
		"exact":           {"it names the resource", webhooks(`{apiGroups: [apps], apiVersions: [v1], resources: [deployments]}`), nil, true},
		"another version": {"the server converts the object", webhooks(`{apiGroups: [apps], apiVersions: [v1beta1], resources: [deployments]}`), nil, true},
		"everything":      {"a policy engine", webhooks(`{apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}`), nil, true},
		"another kind":    {"it is about pods", webhooks(`{apiGroups: [""], apiVersions: [v1], resources: [pods, pods/status]}`), nil, false},
		"another group":   {"resources of one name", webhooks(`{apiGroups: [example.com], apiVersions: [v1], resources: [deployments]}`), nil, false},
		"no rules":        {"nothing is said", webhooks(``), nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := clustertest.Documents(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}`)[0]
			if got := matcher(tc.webhooks, tc.err)(Object{Unstructured: u, Resource: "deployments"}); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
