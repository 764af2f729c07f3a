package cluster

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestDeleteOfHiddenKind is about an aggregated API that is down: what it serves
// may well be there, so nobody may say that it is gone.
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
			return c.Delete(t.Context(), "vnf-1", refs)
		},
		"Orphan": func(t *testing.T, c *Cluster, refs []nf.Ref) ([]nf.Change, error) {
			return c.Orphan(t.Context(), "vnf-1", refs)
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
