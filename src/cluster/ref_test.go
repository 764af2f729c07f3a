package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestRefOf holds nf.RefOf against the parser of Kubernetes.
func TestRefOf(t *testing.T) {
	cases := map[string]struct{ reason, version string }{
		"Core":    {"the core group has no name", "v1"},
		"Group":   {"a group and a version", "apps/v1"},
		"Empty":   {"no version", ""},
		"Slash":   {"nothing but a slash", "/"},
		"Slashes": {"too many slashes", "a/b/c"},
		"Trailer": {"a group without a version", "apps/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.version, "kind": "Thing", "metadata": map[string]any{"name": "x", "namespace": "ns"}}}
			gvk := u.GroupVersionKind()
			want := nf.Ref{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: "ns", Name: "x"}
			diff(t, tc.reason, want, nf.RefOf(u))
		})
	}
}
