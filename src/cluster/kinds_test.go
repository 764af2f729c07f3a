package cluster

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// TestDiscoveries counts the discoveries of a region that no longer serves v1beta1.
func TestDiscoveries(t *testing.T) {
	missing := strings.Replace(notFound, `"code"`, `"details":{"kind":"namespaces","name":"ns"},"code"`, 1)
	health := func(t *testing.T, c *Cluster) {
		t.Helper()
		if _, err := c.Health(t.Context(), instance("vnf-1"), []nf.Ref{gizmo("v1beta1")}); err != nil {
			t.Error(err)
		}
	}
	cases := map[string]struct {
		reason   string
		parallel int // calls
		calls    int // one after another
		do       func(t *testing.T, c *Cluster)
	}{
		"old version": {"another version will do", 1, 10, health},
		"at once":     {"all wait for one discovery", 20, 1, health},
		"namespace": {"the kind is served, and the namespace does not exist", 1, 10, func(t *testing.T, c *Cluster) {
			_, err := c.ApplyNew(t.Context(), instance("vnf-1"), objects(t, "vnf-1", "ns", `{apiVersion: example.org/v1, kind: Gizmo, metadata: {name: g}}`))
			if nf.KindOf(err) != nf.NotFound {
				t.Error(err)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &upgraded{stopped: true}
				var discoveries atomic.Int32
				_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
					switch {
					case req.Method == http.MethodPatch:
						return answer(404, missing)
					case req.URL.Path == "/apis":
						discoveries.Add(1)
					}
					return u.respond(req)
				})
				var callers sync.WaitGroup
				for range tc.parallel {
					callers.Go(func() {
						for range tc.calls {
							tc.do(t, c)
						}
					})
				}
				callers.Wait()
				if n := discoveries.Load(); n != 1 {
					t.Errorf("%s: %d discoveries, want 1", tc.reason, n)
				}
			})
		})
	}
}

// TestKindsWhoseReaderLeaves has a caller whose context ends during the discovery that
// another caller waits for.
func TestKindsWhoseReaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		discoveries := 0
		_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/apis" {
				if discoveries++; discoveries == 1 {
					return hole(req)
				}
			}
			return served(req)
		})
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := c.client.apis.kinds(leaving, nil)
			left <- err
		}()
		synctest.Wait()
		stayed := make(chan error, 1)
		go func() {
			_, err := c.client.apis.kinds(t.Context(), nil)
			stayed <- err
		}()
		synctest.Wait()
		leave()
		wantKind(t, <-left, nf.Cancelled)
		if err := <-stayed; err != nil || discoveries != 2 {
			t.Errorf("the other caller reads the kinds: %d discoveries, %v", discoveries, err)
		}
	})
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
