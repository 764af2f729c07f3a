package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// TestClaimPlace checks that a fault of a volume that a package names has the line of its
// metadata, and one of a request the line of the claim.
func TestClaimPlace(t *testing.T) {
	t.Parallel()
	use := nf.VolumeUse{Volume: "data", Claim: "db"}
	cases := map[string]struct {
		reason  string
		binding nf.Binding
		want    string
	}{
		"Package": {
			"the metadata names the volume", nf.Binding{VolumeUse: use, At: nf.Place{Field: "volumes[0]", File: "metadata.yaml", Lines: func(field string) int { return len(field) }}},
			"metadata.yaml:5: volumes[0].claim: PersistentVolumeClaim db requests 11Gi, and the volume has 10Gi",
		},
		"Request": {
			"the package has the claim", nf.Binding{VolumeUse: use, At: nf.Place{Field: "volumes[0]"}},
			"claim.yaml:3: volumes[0].claim: PersistentVolumeClaim db requests 11Gi, and the volume has 10Gi",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": "db"},
				"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "11Gi"}}},
			}}
			plan := render.Plan{Namespace: "ns", Stages: []render.Stage{{Name: "main", Objects: []render.Planned{{Object: claim, File: "claim.yaml", Line: 3}}}}}
			_, err := plan.Claim([]render.Claim{{VolumeClaim: nf.VolumeClaim{PV: "pv", Size: "10Gi", Mode: "Filesystem"}, Binding: tc.binding}}, nf.Subject{}, nil)
			v := nf.ViolationsOf(err)
			if len(v) != 1 {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, v[0].String()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClaims binds claims of a plan to a volume of 10Gi.
func TestClaims(t *testing.T) {
	t.Parallel()
	owner := nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}
	volume := nf.VolumeClaim{PV: "pv", Class: "fast", Size: "10Gi", AccessModes: []string{"ReadWriteOnce", "ReadOnlyMany"}, Mode: "Filesystem"}
	bound := func(modes ...any) map[string]any {
		return map[string]any{"volumeName": "pv", "storageClassName": "fast", "volumeMode": "Filesystem", "accessModes": modes, "resources": map[string]any{"requests": map[string]any{"storage": "10Gi"}}}
	}
	modes := func(all ...any) []any { return all }
	cases := map[string]struct {
		reason string
		spec   map[string]any // of the package's claim; nil: it has none
		want   map[string]any
		wrong  []string // in the messages; empty: none
	}{
		"Created":  {"a claim that the package does not have", nil, bound("ReadWriteOnce", "ReadOnlyMany"), nil},
		"Package":  {"the package's claim keeps its access modes", map[string]any{"accessModes": modes("ReadWriteOnce"), "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}, bound("ReadWriteOnce"), nil},
		"Bound":    {"a claim that is bound already stays", bound("ReadOnlyMany"), bound("ReadOnlyMany"), nil},
		"Modes":    {"the volume does not have the mode", map[string]any{"accessModes": modes("ReadWriteMany")}, nil, []string{"access mode ReadWriteMany"}},
		"Size":     {"the volume is too small", map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "11Gi"}}}, nil, []string{"requests 11Gi"}},
		"Mode":     {"the volume has files", map[string]any{"volumeMode": "Block"}, nil, []string{`volumeMode "Block"`}},
		"Class":    {"the volume is of another class", map[string]any{"storageClassName": "slow"}, nil, []string{`storageClassName "slow"`}},
		"Other":    {"the claim names another volume", map[string]any{"volumeName": "other"}, nil, []string{`volumeName "other"`}},
		"Selector": {"the claim selects volumes", map[string]any{"selector": map[string]any{}}, nil, []string{"selector"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var plan render.Plan
			plan.Namespace = "ns"
			if tc.spec != nil {
				claim := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"name": "db"}, "spec": tc.spec}}
				plan.Stages = []render.Stage{{Name: "main", Objects: []render.Planned{{Object: claim, File: "claim.yaml"}}}}
			}
			got, err := plan.Claim([]render.Claim{{VolumeClaim: volume, Binding: nf.Binding{VolumeUse: nf.VolumeUse{Volume: "data", Claim: "db"}, At: nf.Place{Field: "volumes[0]"}}}}, owner, map[string]string{"app": "db"})
			v := nf.ViolationsOf(err)
			if len(v) != len(tc.wrong) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			for i, text := range tc.wrong {
				if v[i].Field != "volumes[0].claim" || !strings.Contains(v[i].Message, text) {
					t.Errorf("%s: %+v", tc.reason, v[i])
				}
			}
			if tc.want == nil {
				return
			}
			if len(got.Stages) != 1 || len(got.Stages[0].Objects) != 1 {
				t.Fatalf("%s: %+v", tc.reason, got)
			}
			if made := got.Stages[0].Objects[0].Object; tc.spec == nil && (nf.OwnerOf(made.GetLabels()) != owner || made.GetLabels()["app"] != "db") {
				t.Errorf("%s: it has the labels %v", tc.reason, made.GetLabels())
			}
			if diff := cmp.Diff(tc.want, got.Stages[0].Objects[0].Object.Object["spec"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
