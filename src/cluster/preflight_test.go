package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// definition is a CustomResourceDefinition of the kind Gizmo in a group of the
// test's own, and one such object.
func definition(group, scope string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.` + group + `}
spec:
  group: ` + group + `
  scope: ` + scope + `
  names: {kind: Gizmo, plural: gizmos}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: ` + group + `/v1
kind: Gizmo
metadata: {name: g}
`
}

func TestPreflight(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	mustApply(t, c, vnf, configMap(t, vnf, ns, "mine", "1"))
	mustApply(t, c, "vnf-2", configMap(t, "vnf-2", ns, "theirs", "1"))
	foreignApply(t, c, "kubectl", unlabelled(configMap(t, "x", ns, "nobodys", "1")))
	cases := map[string]struct {
		reason    string
		namespace string
		objects   string
		want      nf.Kind // Internal: none
		fields    []string
		messages  []string
	}{
		"fine": {
			reason: "new objects and the owner's own", namespace: ns,
			objects: `{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}` + "\n---\n" + `{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}`,
		},
		"no namespace yet": {
			reason: "nothing can be in the way in a namespace that is not there", namespace: ns + "-not",
			objects: `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}`,
		},
		"unknown kinds": {
			reason: "each kind that is not served is named", namespace: ns,
			objects: `{apiVersion: example.org/v1, kind: Gizmo, metadata: {name: a}}` + "\n---\n" + `{apiVersion: apps/v9, kind: Deployment, metadata: {name: b}}`,
			want:    nf.Unsupported, fields: []string{"Gizmo a", "Deployment b"}, messages: []string{"example.org/v1", "apps/v9"},
		},
		"not kept": {
			reason: "a kind that is a question, not an object", namespace: ns,
			objects: `{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, metadata: {name: a}}`,
			want:    nf.Unsupported, fields: []string{"SelfSubjectAccessReview a"}, messages: []string{"does not keep"},
		},
		"another namespace": {
			reason: "an instance has no objects in a namespace that nothing opens", namespace: ns,
			objects: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}`,
			want:    nf.Invalid, fields: []string{"ConfigMap a: metadata.namespace"}, messages: []string{`"kube-system"`},
		},
		"conflicts": {
			reason: "each object of others is named, with who has it", namespace: ns,
			objects: `{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}` + "\n---\n" + `{apiVersion: v1, kind: ConfigMap, metadata: {name: nobodys}}` +
				"\n---\n" + `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: admin}}`,
			want: nf.Conflict, fields: []string{"ConfigMap theirs", "ConfigMap nobodys", "ClusterRole admin"},
			messages: []string{"belongs to VNF instance vnf-2", "was made by kubectl", "was made by "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.Preflight(t.Context(), instance(vnf), inside(tc.namespace), objects(t, vnf, "", tc.objects))
			if tc.fields == nil {
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				return
			}
			wantKind(t, err, tc.want)
			v := nf.ViolationsOf(err)
			var fields []string
			for i := range v {
				fields = append(fields, fieldIn(v[i]))
				if i < len(tc.messages) && !strings.Contains(v[i].Said().String(), tc.messages[i]) {
					t.Errorf("%s: message is %q, want it to hold %q", tc.reason, v[i].Said(), tc.messages[i])
				}
			}
			diff(t, tc.reason, tc.fields, fields)
		})
	}
}

// fieldIn is what a violation is about, without the namespace, which has another
// name in each run.
func fieldIn(v nf.Violation) string {
	v.Object.Namespace = ""
	return v.Place()
}

func TestPreflightSetsNamespaces(t *testing.T) {
	c := openAt(t, clustertest.Kubeconfig(t))
	us := objects(t, "vnf-1", "", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`+"\n---\n"+definition("preflight.test", "Namespaced"))
	us[1].SetNamespace("wrong") // the definition is of the whole cluster
	if _, err := c.Preflight(t.Context(), instance("vnf-1"), inside("somewhere"), us); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range us {
		got = append(got, u.GetKind()+" "+u.GetNamespace())
	}
	diff(t, "the scope decides, also of a kind that is yet to come", []string{"ConfigMap somewhere", "CustomResourceDefinition ", "Gizmo somewhere"}, got)
}

// TestDefinitionAndItsObject carries a kind through its life, as the stages of
// a plan do.
func TestDefinitionAndItsObject(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-crd"
	us := objects(t, vnf, "", definition(ns+".test", "Namespaced"))
	if _, err := c.Preflight(t.Context(), instance(vnf), inside(ns), us); err != nil {
		t.Fatal(err)
	}
	changes, err := c.Diff(t.Context(), instance(vnf), nf.AdoptionSelector{}, us)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "neither is there yet", map[string]nf.Action{us[0].GetName(): nf.Created, "g": nf.Created}, actions(changes))

	made := mustApply(t, c, vnf, us[0])
	await(t.Context(), t, c, vnf, made, nf.Current)
	gizmo := mustApply(t, c, vnf, us[1])
	await(t.Context(), t, c, vnf, gizmo, nf.Current)

	// The object goes with its kind; it is not deleted itself because the
	// garbage collector gets to know a new kind only after half a minute.
	if _, err := c.Delete(t.Context(), instance(vnf), refs(us[0])); err != nil {
		t.Fatal(err)
	}
	await(t.Context(), t, c, vnf, append(made, gizmo...), nf.Absent)
	health, err := c.Health(t.Context(), instance(vnf), refs(us[1]))
	for ; err == nil && health[0].Status == nf.Absent; health, err = c.Health(t.Context(), instance(vnf), refs(us[1])) {
		<-time.After(10 * time.Millisecond) // the server lists a kind, now empty, for a moment longer
	}
	if err != nil || health[0].Status != nf.Unknown {
		t.Errorf("what became of an object cannot be read any more once its kind is gone: %v, %v", health, err)
	}
	changes, err = c.Delete(t.Context(), instance(vnf), refs(us[1]))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "an object of a kind that is gone need not be deleted", map[string]nf.Action{"g": nf.Unchanged}, actions(changes))
}
