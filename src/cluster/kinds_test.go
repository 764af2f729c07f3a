package cluster

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestDeleteOfHiddenKind is about an aggregated API that is down: what it serves
// may well be there, so it must not be reported as deleted.
func TestDeleteOfHiddenKind(t *testing.T) {
	gizmo := nf.Ref{Group: "example.org", Version: "v1", Kind: "Gizmo", Namespace: "ns", Name: "g"}
	cases := map[string]struct {
		reason string
		groups string // the group versions that exist
		refs   []nf.Ref
		want   nf.Kind // Internal: none
	}{
		"hidden":          {"its group cannot be read", `{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}]}`, []nf.Ref{awaited, gizmo}, nf.Unreachable},
		"of another kind": {"other groups are not hidden", `{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}]}`, []nf.Ref{awaited}, nf.Internal},
		"not served":      {"nobody knows the group: its objects are gone with it", ``, []nf.Ref{awaited, gizmo}, nf.Internal},
	}
	calls := map[string]func(t *testing.T, c *Cluster, refs []nf.Ref) ([]nf.Change, error){
		"Delete": func(t *testing.T, c *Cluster, refs []nf.Ref) ([]nf.Change, error) {
			return c.Delete(t.Context(), instance("vnf-1"), refs)
		},
		"Orphan": func(t *testing.T, c *Cluster, refs []nf.Ref) ([]nf.Change, error) {
			return c.Orphan(t.Context(), instance("vnf-1"), refs)
		},
	}
	for name, tc := range cases {
		for call, do := range calls {
			t.Run(call+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
						switch {
						case req.URL.Path == "/apis":
							return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+tc.groups+`]}`)
						case strings.HasPrefix(req.URL.Path, "/apis/example.org"):
							return answer(503, "")
						case strings.HasSuffix(req.URL.Path, "/configmaps/a"):
							return answer(404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
						}
						return served(req)
					})
					changes, err := do(t, c, tc.refs)
					if tc.want != nf.Internal {
						wantKind(t, err, tc.want)
						return
					}
					if err != nil || len(changes) != len(tc.refs) {
						t.Errorf("%s: %v, %v", tc.reason, changes, err)
					}
					for _, change := range changes {
						if change.Action != nf.Unchanged {
							t.Errorf("%s: %+v", tc.reason, change)
						}
					}
				})
			})
		}
	}
}

// TestApplyOfHiddenKind is about the same API, and what is to be applied: it may
// well be served a moment later.
func TestApplyOfHiddenKind(t *testing.T) {
	gizmo := func() []*unstructured.Unstructured {
		return objects(t, "vnf-1", "ns", `{apiVersion: example.org/v1, kind: Gizmo, metadata: {name: g}}`)
	}
	for name, do := range map[string]func(t *testing.T, c *Cluster) error{
		"Preflight": func(t *testing.T, c *Cluster) error {
			_, err := c.Preflight(t.Context(), instance("vnf-1"), inside("ns"), gizmo())
			return err
		},
		"PreflightAdopt": func(t *testing.T, c *Cluster) error {
			_, err := c.PreflightAdopt(t.Context(), instance("vnf-1"), inside("ns"), nf.AdoptionSelector{}, gizmo())
			return err
		},
		"Apply": func(t *testing.T, c *Cluster) error {
			_, err := c.Apply(t.Context(), instance("vnf-1"), gizmo())
			return err
		},
	} {
		for groups, want := range map[string]nf.Kind{
			`{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}]}`: nf.Unreachable,
			``: nf.Unsupported,
		} {
			t.Run(name+" "+want.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
						switch {
						case req.URL.Path == "/apis":
							return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+groups+`]}`)
						case strings.HasPrefix(req.URL.Path, "/apis/example.org"):
							return answer(503, "")
						}
						return served(req)
					})
					err := do(t, c)
					wantKind(t, err, want)
					if reason := nf.ReasonOf(err); want == nf.Unreachable && reason != "unavailable" {
						t.Errorf("the reason is %q, want that the API is unavailable: %v", reason, err)
					}
				})
			})
		}
	}
}
