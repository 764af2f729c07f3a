package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const podTemplate = `template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "i:1"}]}}`

func TestApplyTellsImmutable(t *testing.T) {
	c, ns := sandbox(t)
	crb := "test-" + ns + "-binding"
	cases := map[string]struct {
		reason string
		before string
		after  string
		want   nf.Kind // Conflict: immutable
		field  string  // of the first violation
	}{
		"Deployment selector": {
			reason: "pods are found by it",
			before: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, ` + podTemplate + `}}`,
			after: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 0, selector: {matchLabels: {a: c}},
				template: {metadata: {labels: {a: c}}, spec: {containers: [{name: c, image: "i:1"}]}}}}`,
			want: nf.Conflict, field: "Deployment d: spec.selector",
		},
		"Service clusterIP": {
			reason: "clients know it",
			before: `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}`,
			after:  `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, ports: [{port: 80}]}}`,
			want:   nf.Conflict, field: "Service s: spec.clusterIPs[0]",
		},
		"StatefulSet volumeClaimTemplates": {
			reason: "claims were made of them",
			before: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 0, serviceName: s, selector: {matchLabels: {a: b}}, ` + podTemplate + `,
				volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`,
			after: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {replicas: 0, serviceName: s, selector: {matchLabels: {a: b}}, ` + podTemplate + `,
				volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}]}}`,
			want: nf.Conflict, field: "StatefulSet s: spec.volumeClaimTemplates",
		},
		"Job template": {
			reason: "a run is a run",
			before: `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "i:1"}]}}}}`,
			after:  `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "i:2"}]}}}}`,
			want:   nf.Conflict, field: "Job j: spec.template.spec",
		},
		"PersistentVolumeClaim shrinks": {
			reason: "volumes grow only",
			before: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}`,
			after:  `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
			want:   nf.Conflict, field: "PersistentVolumeClaim p: spec",
		},
		"PersistentVolumeClaim class": {
			reason: "a volume is where it is",
			before: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: q}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}`,
			after:  `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: q}, spec: {storageClassName: other, accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}`,
			want:   nf.Conflict, field: "PersistentVolumeClaim q: spec",
		},
		"immutable ConfigMap": {
			reason: "it was said to be",
			before: `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, immutable: true, data: {a: "1"}}`,
			after:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, immutable: true, data: {a: "2"}}`,
			want:   nf.Conflict, field: "ConfigMap m: data",
		},
		"Secret type": {
			reason: "others rely on it",
			before: `{apiVersion: v1, kind: Secret, metadata: {name: k}, type: Opaque, stringData: {a: "1"}}`,
			after:  `{apiVersion: v1, kind: Secret, metadata: {name: k}, type: example.org/x, stringData: {a: "1"}}`,
			want:   nf.Conflict, field: "Secret k: type",
		},
		"RoleBinding roleRef": {
			reason: "permissions were checked when it was created",
			before: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
			after:  `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}}`,
			want:   nf.Conflict, field: "RoleBinding r: roleRef",
		},
		"ClusterRoleBinding roleRef": {
			reason: "it contains no other objects, so it can be recreated",
			before: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: ` + crb + `}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
			after:  `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: ` + crb + `}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}}`,
			want:   nf.Conflict, field: "ClusterRoleBinding " + crb + ": roleRef",
		},
		"definition's scope": {
			reason: "recreating a definition would delete all objects of the kind",
			before: definitionOf(ns, "Namespaced"), after: definitionOf(ns, "Cluster"),
			want: nf.Invalid, field: "CustomResourceDefinition gizmos." + ns + ".example.org: spec.scope",
		},
		"a wrong value": {
			reason: "an object that is wrong is wrong, whether it is there or not",
			before: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, ` + podTemplate + `}}`,
			after:  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: -1, selector: {matchLabels: {a: b}}, ` + podTemplate + `}}`,
			want:   nf.Invalid, field: "Deployment w: spec.replicas",
		},
		"wrong and immutable": {
			reason: "recreating it would not help",
			before: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, ` + podTemplate + `}}`,
			after: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: -1, selector: {matchLabels: {a: c}},
				template: {metadata: {labels: {a: c}}, spec: {containers: [{name: c, image: "i:1"}]}}}}`,
			want: nf.Invalid, field: "Deployment x: spec.replicas",
		},
		"a port of its own": {
			reason: "the object itself blocks the dry run, so the result is unknown",
			before: `{apiVersion: v1, kind: Service, metadata: {name: own}, spec: {type: NodePort, ports: [{port: 80, nodePort: ` + nodePort(ns) + `}]}}`,
			after:  `{apiVersion: v1, kind: Service, metadata: {name: own}, spec: {type: NodePort, clusterIP: 192.0.2.1, ports: [{port: 80, nodePort: ` + nodePort(ns) + `}]}}`,
			want:   nf.Invalid, field: "Service own: spec.clusterIPs[0]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := func(text string) *unstructured.Unstructured {
				u := objects(t, "vnf-1", "", text)[0]
				if !strings.HasPrefix(u.GetKind(), "C") || u.GetKind() == "ConfigMap" {
					u.SetNamespace(ns)
				}
				return u
			}
			before, after := read(tc.before), read(tc.after)
			made := mustApply(t, c, "vnf-1", before)
			if before.GetKind() == "CustomResourceDefinition" {
				await(t.Context(), t, c, "vnf-1", made, nf.Current) // before that, it can be changed
			}
			t.Cleanup(func() { deleteAtEnd(t, c, before) })
			_, err := c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{after})
			check := func(call string, err error) {
				t.Helper()
				v, wantReason := nf.ViolationsOf(err), ""
				if tc.want == nf.Conflict {
					wantReason = "immutable"
				}
				if nf.KindOf(err) != tc.want || nf.ReasonOf(err) != wantReason || len(v) == 0 || fieldIn(v[0]) != tc.field || v[0].Message == "" {
					t.Errorf("%s: %s: kind %v, reason %q, violations %v, error %v", tc.reason, call, nf.KindOf(err), nf.ReasonOf(err), v, err)
				}
			}
			check("Apply", err)
			_, err = c.Diff(t.Context(), instance("vnf-1"), nf.AdoptionSelector{}, []*unstructured.Unstructured{after})
			check("Diff", err)
		})
	}
}

func definitionOf(ns, scope string) string {
	first, _, _ := strings.Cut(definition(ns+".example.org", scope), "---")
	return first
}

// nodePort is a port that goes with a namespace's name.
func nodePort(ns string) string {
	n := 0
	for _, r := range ns {
		n = (n*31 + int(r)) % 2000
	}
	return fmt.Sprint(30500 + n)
}

func deleteAtEnd(t *testing.T, c *Cluster, u *unstructured.Unstructured) {
	t.Helper()
	// The test's own context has ended by now.
	if _, err := c.Delete(context.Background(), instance("vnf-1"), refs(u)); err != nil {
		t.Error(err)
	}
}

// TestImmutableLeavesNothing looks at what is asked of the API server.
func TestImmutableLeavesNothing(t *testing.T) {
	c, r, ns := recorded(t)
	before := objects(t, "vnf-1", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, immutable: true, data: {a: "1"}}`)[0]
	after := before.DeepCopy()
	after.Object["data"] = map[string]any{"a": "2"}
	apply := func(u *unstructured.Unstructured) error {
		_, err := c.Apply(t.Context(), instance("vnf-1"), []*unstructured.Unstructured{u})
		return err
	}
	isDryRun := func(q clustertest.Request) bool { return q.Query.Get("dryRun") != "" }
	trials := func() (n int) {
		for _, q := range r.Requests() {
			if isDryRun(q) {
				n++
			}
		}
		return n
	}
	wrong := before.DeepCopy()
	wrong.Object["data"] = map[string]any{"not a key": "1"}
	wantKind(t, apply(wrong), nf.Invalid)
	if n := trials(); n != 0 {
		t.Errorf("an object that is not there is not tried: %d trials", n)
	}
	mustApply(t, c, "vnf-1", before)
	heal := r.Fail(isDryRun, clustertest.Status(400))
	wantKind(t, apply(after), nf.Invalid)
	heal()
	wantKind(t, apply(after), nf.Conflict)
	if n := trials(); n != 2 {
		t.Errorf("there were %d trials, want one for each refusal", n)
	}
	var names []string
	for _, u := range list(t, c, nf.RefOf(before)) {
		if u.GetName() != "kube-root-ca.crt" {
			names = append(names, u.GetName())
		}
	}
	diff(t, "a trial makes nothing", []string{"m"}, names)
	if v := get(t, c, nf.RefOf(before)).Object["data"].(map[string]any)["a"]; v != "1" {
		t.Errorf("the object is as it was: %v", v)
	}
}

func TestFreshName(t *testing.T) {
	for reason, name := range map[string]string{
		"a short one": "web", "a long one": strings.Repeat("x", 253), "one that is cut at a dot": strings.Repeat("x", 39) + ".example.org",
	} {
		got := freshName(name)
		if len(got) > 52 || len(validation.IsDNS1123Label(got)) > 0 || got == freshName(name) || got[:3] != name[:3] {
			t.Errorf("%s: %q is no fresh name that fits every kind", reason, got)
		}
	}
}

// TestImmutableKeepsClaims changes an immutable field of a StatefulSet: it may be recreated
// only if its claims stay.
func TestImmutableKeepsClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, before, want string
	}{
		"Retain": {"the claims stay", "Retain", nf.ReasonImmutable},
		"Delete": {"the claims would be deleted, whatever the new object says", "Delete", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, ns := sandbox(t)
			set := func(service, whenDeleted string) *unstructured.Unstructured {
				return workloadOf(t, ns, "StatefulSet", "db", held, "serviceName: "+service+", replicas: 0, persistentVolumeClaimRetentionPolicy: {whenDeleted: "+whenDeleted+", whenScaled: Retain},")
			}
			mustApply(t, c, "vnf-1", set("a", tc.before))
			after := []*unstructured.Unstructured{set("b", "Retain")}
			_, err := c.Apply(t.Context(), instance("vnf-1"), after)
			if nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != tc.want {
				t.Errorf("%s: reason %q, want %q: %v", tc.reason, nf.ReasonOf(err), tc.want, err)
			}
			_, err = c.DryRun(t.Context(), instance("vnf-1"), after, nil)
			if (err == nil) != (tc.want != "") {
				t.Errorf("%s: before anything is changed: %v", tc.reason, err)
			}
		})
	}
}
