package cluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const claimTemplates = `volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}],`

// TestVolumeClaimsOfALiveSet has Kubernetes make the claims, deletes the
// StatefulSet, and then the claims.
func TestVolumeClaimsOfALiveSet(t *testing.T) {
	const vnf = "vnf-1"
	c, ns := sandbox(t)
	set := workloadOf(t, ns, "StatefulSet", "db", held, "replicas: 1, serviceName: db, "+claimTemplates)
	mustApply(t, c, vnf, set)
	heldPods(t, ns, 1, func(*unstructured.Unstructured) {}) // a pod comes after its claims
	want := []nf.SetClaims{{
		Set: nf.RefOf(set), Labels: map[string]string{"app": "db"},
		Claims: []nf.Ref{{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: ns, Name: "data-db-0"}},
	}}
	found := func(planned ...*unstructured.Unstructured) []nf.SetClaims {
		t.Helper()
		got, err := c.VolumeClaims(t.Context(), instance(vnf), refs(set), planned)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	diff(t, "of the live set", want, found())
	if got, err := c.VolumeClaims(t.Context(), instance("vnf-2"), refs(set), []*unstructured.Unstructured{set}); err != nil || len(got) > 0 {
		t.Errorf("another owner finds %v, %v", got, err)
	}

	gone, err := c.Delete(t.Context(), instance(vnf), refs(set))
	if err != nil {
		t.Fatal(err)
	}
	await(t.Context(), t, c, vnf, gone, nf.Absent)
	diff(t, "of a set that is gone, and not planned", []nf.SetClaims(nil), found())
	diff(t, "of a set that is gone", want, found(set))

	if _, err := c.Adopt(t.Context(), instance(vnf), nf.AdoptionSelector{Labels: want[0].Labels}, want[0].Claims); err != nil {
		t.Fatal(err)
	}
	diff(t, "of claims that are the owner's", want, found(set))
	if gone, err = c.Delete(t.Context(), instance(vnf), want[0].Claims); err != nil || gone[0].Action != nf.Deleted {
		t.Fatalf("deleting the claims: %v, %v", gone, err)
	}
	await(t.Context(), t, c, vnf, gone, nf.Absent)
	if kept, err := c.RemoveNamespace(t.Context(), ns); err != nil || len(kept) > 0 {
		t.Errorf("the namespace holds %v, %v", kept, err)
	}
}

// TestVolumeClaims looks for claims that the test makes, of a StatefulSet db that
// is planned alone.
func TestVolumeClaims(t *testing.T) {
	const vnf = "vnf-1"
	claim := func(name, metadata string) string {
		return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: ` + name + `, ` + metadata + `}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`
	}
	const mine = `labels: {app: db}`
	pod := func(uses string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: user}, spec: {schedulerName: ` + held + `, containers: [{name: c, image: "i:1"}],
			volumes: [{name: v, persistentVolumeClaim: {claimName: ` + uses + `}}]}}`
	}
	cases := map[string]struct {
		reason string
		spec   string
		there  []string
		want   []string
	}{
		"Any ordinal":        {reason: "also of replicas that are no more", there: []string{claim("data-db-0", mine), claim("data-db-17", mine)}, want: []string{"data-db-0", "data-db-17"}},
		"Other names":        {reason: "a name is no ordinal, template or set of ours", there: []string{claim("data-db-x", mine), claim("data-db-01", mine), claim("data-db", mine), claim("log-db-0", mine), claim("data-dbx-0", mine)}},
		"Other labels":       {reason: "the name alone is not enough", there: []string{claim("data-db-0", `labels: {app: other}`), claim("data-db-1", `labels: {}`)}},
		"Another instance's": {reason: "whose is written on it", there: []string{claim("data-db-0", `labels: {app: db, `+nf.OwnerLabel+`: vnf-2}`)}},
		"Its own":            {reason: "a removal before has made it so", there: []string{claim("data-db-0", `labels: {app: db, `+nf.OwnerLabel+`: vnf-1}`)}, want: []string{"data-db-0"}},
		"Dependent": {
			reason: "it goes by itself", there: []string{claim("data-db-0", mine+`, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: 6b0c1f0e-0000-4000-8000-000000000000}]`)},
		},
		"Used by another's pod": {reason: "it would lose its data", there: []string{claim("data-db-0", mine), claim("data-db-1", mine), pod("data-db-0")}, want: []string{"data-db-1"}},
		"Another set's": {
			reason: "the name and the labels fit another StatefulSet, too", spec: "db-1",
			there: []string{claim("data-db-1-0", `labels: {app: db-1}`), `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: "1"}, spec: {replicas: 0, serviceName: x, selector: {matchLabels: {app: db-1}},
				volumeClaimTemplates: [{metadata: {name: data-db}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}],
				template: {metadata: {labels: {app: db-1}}, spec: {containers: [{name: c, image: "i:1"}]}}}}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, ns := sandbox(t)
			for _, text := range tc.there {
				u := parsed(t, text)
				u.SetNamespace(ns)
				foreignApply(t, c, "somebody", u)
			}
			set := workloadOf(t, ns, "StatefulSet", "db", held, "serviceName: db, "+claimTemplates)
			if tc.spec != "" {
				set = workloadOf(t, ns, "StatefulSet", tc.spec, held, "serviceName: db, "+claimTemplates)
			}
			found, err := c.VolumeClaims(t.Context(), instance(vnf), refs(set), []*unstructured.Unstructured{set})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, s := range found {
				for _, ref := range s.Claims {
					got = append(got, ref.Name)
				}
			}
			if slices.Sort(got); !cmp.Equal(tc.want, got) {
				t.Errorf("%s: found %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
