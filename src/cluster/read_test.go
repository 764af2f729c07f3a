package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestRead(t *testing.T) {
	c, ns := sandbox(t)
	mine := objects(t, "vnf-1", ns, `
apiVersion: v1
kind: Secret
metadata: {name: pass, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data": {"password": "czNjcmV0"}}', note: kept}}
data: {password: czNjcmV0}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data: {key: value}
`)
	theirs := configMap(t, "vnf-2", ns, "theirs", "1")
	mustApply(t, c, "vnf-1", mine...)
	mustApply(t, c, "vnf-2", theirs)
	missing := nf.RefOf(configMap(t, "vnf-1", ns, "missing", "1"))
	gizmo := nf.Ref{Group: "example.org", Version: "v1", Kind: "Gizmo", Namespace: ns, Name: "gizmo"}

	got, err := c.Read(t.Context(), instance("vnf-1"), append(refs(mine[1], theirs), missing, gizmo, nf.RefOf(mine[0])))
	if err != nil {
		t.Fatal(err)
	}
	for i, reason := range map[int]string{1: "another's object", 2: "what does not exist", 3: "a kind that is not served"} {
		if got[i] != nil {
			t.Errorf("%s is %v, want none", reason, got[i])
		}
	}
	plain, secret := got[0], got[4]
	diff(t, "an object is whole", map[string]any{"key": "value"}, plain["data"])
	if plain["kind"] != "ConfigMap" || plain["apiVersion"] != "v1" {
		t.Errorf("an object out of a list is a %v of %v", plain["kind"], plain["apiVersion"])
	}
	diff(t, "a Secret's names are told, and its values are not", map[string]any{"password": ""}, secret["data"])
	annotations, _, _ := unstructured.NestedStringMap(secret, "metadata", "annotations")
	diff(t, "nor is the copy that kubectl left", []string{"note"}, slices.Sorted(maps.Keys(annotations)))
}

func TestFind(t *testing.T) {
	c, ns := sandbox(t)
	mustApply(t, c, "vnf-1", configMap(t, "vnf-1", ns, "a", "1"), configMap(t, "vnf-1", ns, "b", "2"))
	mustApply(t, c, "vnf-2", configMap(t, "vnf-2", ns, "c", "3"))
	mustApply(t, c, ns, configMap(t, ns, ns, "e", "4")) // an owner that no other test has
	cases := map[string]struct {
		reason string
		s      Selection
		want   []string
		kind   nf.Kind
	}{
		"Labels":      {"a selector selects", Selection{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Labels: nf.OwnerLabel + "=vnf-1"}, []string{"a", "b"}, 0},
		"SetSelector": {"of any form", Selection{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Labels: nf.OwnerLabel + " in (vnf-2)"}, []string{"c"}, 0},
		"Everywhere":  {"no namespace is every namespace", Selection{APIVersion: "v1", Kind: "ConfigMap", Name: "e", Labels: nf.OwnerLabel + "=" + ns}, []string{"e"}, 0},
		"Name":        {"a name selects, whoever it belongs to", Selection{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Name: "c"}, []string{"c"}, 0},
		"Both":        {"both must be so", Selection{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Name: "c", Labels: nf.OwnerLabel + "=vnf-1"}, nil, 0},
		"NoName":      {"what does not exist is not found", Selection{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns, Name: "d"}, nil, 0},
		"ClusterWide": {"a cluster-scoped kind has no namespace", Selection{APIVersion: "v1", Kind: "Namespace", Namespace: ns, Name: ns}, []string{ns}, 0},
		"NotServed":   {"a kind must be served", Selection{APIVersion: "example.org/v1", Kind: "Gizmo"}, nil, nf.Unsupported},
		"Version":     {"in that version", Selection{APIVersion: "v9", Kind: "ConfigMap"}, nil, nf.Unsupported},
		"NoList":      {"and be one that can be listed", Selection{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}, nil, nf.Unsupported},
		"BadVersion":  {"a version is a group and a version", Selection{APIVersion: "a/b/c", Kind: "ConfigMap"}, nil, nf.Invalid},
		"BadLabels":   {"a selector is one", Selection{APIVersion: "v1", Kind: "ConfigMap", Labels: "a in b"}, nil, nf.Invalid},
		"BadPlace":    {"a namespace leads nowhere else", Selection{APIVersion: "v1", Kind: "ConfigMap", Namespace: "../x"}, nil, nf.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.Find(t.Context(), tc.s)
			if tc.kind != 0 {
				wantKind(t, err, tc.kind)
				if strings.Contains(err.Error(), "unable to parse") {
					t.Errorf("the text of a library is shown: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var names []string
			for _, object := range got {
				if object["kind"] != tc.s.Kind {
					t.Errorf("%s: it is a %v", tc.reason, object["kind"])
				}
				name, _, _ := unstructured.NestedString(object, "metadata", "name")
				names = append(names, name)
			}
			slices.Sort(names)
			diff(t, tc.reason, tc.want, names)
		})
	}
}
