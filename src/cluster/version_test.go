package cluster

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// upgraded is a region with a Gizmo, whose older version the region stops serving.
type upgraded struct {
	late int  // discoveries that still list the older version after that
	only bool // there is no newer version

	mu       sync.Mutex
	stopped  bool
	requests []string // requests for Gizmos
}

// gizmo is the Gizmo in a version.
func gizmo(version string) nf.Ref {
	return nf.Ref{Group: "example.org", Version: version, Kind: "Gizmo", Namespace: "ns", Name: "g"}
}

// openUpgraded returns the region. Its kinds have been read, and it serves version
// v1beta1 no more.
func openUpgraded(t *testing.T, u *upgraded) *Cluster {
	t.Helper()
	_, c, _ := alone(t, u.respond)
	if _, err := c.client.apis.kinds(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	u.stop()
	return c
}

func (u *upgraded) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopped = true
}

// asked returns the requests for Gizmos that have a prefix.
func (u *upgraded) asked(prefix string) (out []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, request := range u.requests {
		if strings.HasPrefix(request, prefix) {
			out = append(out, request)
		}
	}
	return out
}

const notFound = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`

func (u *upgraded) respond(req *http.Request) (*http.Response, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	path, isGizmo := strings.CutPrefix(req.URL.Path, "/apis/example.org/")
	version, rest, isObject := strings.Cut(path, "/")
	switch {
	case req.URL.Path == "/apis":
		var versions []string
		if !u.only {
			versions = append(versions, `{"groupVersion":"example.org/v1","version":"v1"}`)
		}
		if !u.stopped || u.late > 0 {
			versions = append(versions, `{"groupVersion":"example.org/v1beta1","version":"v1beta1"}`)
		}
		if u.stopped {
			u.late--
		}
		return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org","versions":[`+strings.Join(versions, ",")+`]}]}`)
	case isGizmo && !isObject:
		return answer(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/`+version+`","resources":[
			{"name":"gizmos","namespaced":true,"kind":"Gizmo","verbs":["get","list","watch","patch","delete"]}]}`)
	case !isGizmo:
		return served(req)
	}
	verb := req.Method
	if req.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	u.requests = append(u.requests, verb+" "+path)
	object := `"apiVersion":"example.org/` + version + `","kind":"Gizmo","metadata":{"namespace":"ns","name":"g","uid":"u","resourceVersion":"1","generation":1,"labels":{"k8splugin.io/rb-instance-id":"vnf-1"}}`
	switch {
	case version != "v1" && u.stopped:
		return answer(404, notFound)
	case verb == "WATCH":
		return served(req)
	case strings.HasSuffix(rest, "/g"):
		return answer(200, `{`+object+`}`)
	}
	return answer(200, `{"kind":"GizmoList","apiVersion":"example.org/`+version+`","metadata":{"resourceVersion":"1"},"items":[{`+object+`}]}`)
}

// TestActionsAfterVersion has objects whose recorded version was served when the
// kinds were read.
func TestActionsAfterVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		late   int
		act    func(t *testing.T, c *Cluster) ([]nf.Change, error)
		verb   string
		want   nf.Action
	}{
		"delete": {"the object exists in another version", 0, func(t *testing.T, c *Cluster) ([]nf.Change, error) {
			return c.Delete(t.Context(), instance("vnf-1"), []nf.Ref{gizmo("v1beta1")})
		}, "DELETE", nf.Deleted},
		"delete early": {"the list of versions follows later", 2, func(t *testing.T, c *Cluster) ([]nf.Change, error) {
			return c.Delete(t.Context(), instance("vnf-1"), []nf.Ref{gizmo("v1beta1")})
		}, "DELETE", nf.Deleted},
		"orphan": {"the object exists in another version", 0, func(t *testing.T, c *Cluster) ([]nf.Change, error) {
			return c.Orphan(t.Context(), instance("vnf-1"), []nf.Ref{gizmo("v1beta1")})
		}, "PATCH", nf.Orphaned},
		"adopt": {"the object exists in another version", 0, func(t *testing.T, c *Cluster) ([]nf.Change, error) {
			return c.Adopt(t.Context(), instance("vnf-2"), nf.AdoptionSelector{Labels: map[string]string{nf.OwnerLabel: "vnf-1"}}, []nf.Ref{gizmo("v1beta1")})
		}, "PATCH", nf.Adopted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &upgraded{late: tc.late}
				changes, err := tc.act(t, openUpgraded(t, u))
				if err != nil || len(changes) != 1 || changes[0].Action != tc.want {
					t.Errorf("%s: %+v, %v", tc.reason, changes, err)
				}
				diff(t, tc.reason, []string{tc.verb + " v1/namespaces/ns/gizmos/g"}, u.asked(tc.verb))
			})
		})
	}
}

// TestCensusAfterVersion counts objects again after their version is no longer served.
func TestCensusAfterVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upgraded{}
		c := openUpgraded(t, u)
		of := func() (seen []Mark, err error) {
			for m, err := range c.Census(t.Context(), gizmo("v1beta1")) {
				if err != nil || m.Synced {
					return seen, err
				}
				m.Stamp = 0
				seen = append(seen, m)
			}
			return seen, nil
		}
		if seen, err := of(); err == nil {
			t.Errorf("a version that is no longer served has the objects %+v", seen)
		}
		seen, err := of()
		if err != nil {
			t.Error(err)
		}
		diff(t, "the next census lists another version", []Mark{{Owner: "vnf-1", Key: gizmo("").Key(), Status: nf.Current}}, seen)
		diff(t, "the kinds are read again after the first list", []string{"GET v1beta1/gizmos", "GET v1/gizmos"}, u.asked("GET"))
	})
}

// TestFollowAfterVersion follows objects whose version the region stops serving.
func TestFollowAfterVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upgraded{}
		_, c, _ := alone(t, u.respond)
		w := watchOver(c)
		of := func() (seen []seenEvent, err error) {
			for e, err := range w.Subscribe(t.Context(), "east", gizmo("v1beta1")) {
				if err != nil {
					return seen, err
				}
				seen = append(seen, glanceAt(e))
				if e.Deleted || e.Synced && len(u.asked("GET v1/")) > 0 {
					return seen, nil
				}
				if e.Synced {
					u.stop()
				}
			}
			return seen, nil
		}
		want := []seenEvent{{Owner: "vnf-1", Name: "g"}, {Synced: true}}
		seen, err := of()
		wantKind(t, err, nf.Unreachable)
		diff(t, "the objects are not reported as deleted", want, seen)
		if seen, err = of(); err != nil {
			t.Error(err)
		}
		diff(t, "the next subscriber gets them in another version", want, seen)
	})
}

// TestWatchAfterVersion watches an object whose version the region stops serving.
func TestWatchAfterVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		late   int
		only   bool
		want   nf.Kind // Internal: no error
	}{
		"another version": {"the object exists in another version", 0, false, nf.Unreachable},
		"late":            {"the list of versions follows later", 2, false, nf.Unreachable},
		"no version":      {"the object was deleted with its kind", 2, true, nf.Internal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &upgraded{late: tc.late, only: tc.only}
				_, c, _ := alone(t, u.respond)
				watch := func() (last nf.Status, err error) {
					for h, err := range c.Watch(t.Context(), instance("vnf-1"), []nf.Change{{Ref: gizmo("v1beta1")}}) {
						if err != nil {
							return last, err
						}
						if last = h.Status; last == nf.Absent || len(u.asked("GET v1/")) > 0 {
							return last, nil
						}
						u.stop()
					}
					return last, nil
				}
				last, err := watch()
				if absent := last == nf.Absent; absent != tc.only || nf.ReasonOf(err) != map[bool]string{false: nf.ReasonUnavailable}[tc.only] {
					t.Errorf("%s: its last status is %s, and then %v", tc.reason, last, err)
				}
				if tc.want == nf.Internal {
					return
				}
				wantKind(t, err, tc.want)
				if last, err = watch(); err != nil || last == nf.Absent {
					t.Errorf("%s: the next watch finds it %s, %v", tc.reason, last, err)
				}
			})
		})
	}
}

// TestComparisonAfterVersion compares an object whose version is no longer served, and
// one whose namespace does not exist.
func TestComparisonAfterVersion(t *testing.T) {
	missing := strings.Replace(notFound, `"code"`, `"details":{"kind":"namespaces","name":"ns"},"code"`, 1)
	cases := map[string]struct {
		reason string
		body   string // of the response to a dry run
		says   string // why the object cannot be compared; empty: it is missing
	}{
		"version":   {"the object exists in another version", notFound, "does not serve example.org/v1beta1"},
		"namespace": {"the object was deleted with its namespace", missing, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &upgraded{}
				_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
					if req.Method == http.MethodPatch {
						return answer(404, tc.body)
					}
					return u.respond(req)
				})
				of := func() []*unstructured.Unstructured {
					return objects(t, "vnf-1", "ns", `{apiVersion: example.org/v1beta1, kind: Gizmo, metadata: {name: g}}`)
				}
				found, err := c.Drift(t.Context(), instance("vnf-1"), of(), nil)
				if err != nil || found[0].Missing != (tc.says == "") || !strings.Contains(found[0].Message, tc.says) {
					t.Errorf("%s: the drift is %+v, %v", tc.reason, found, err)
				}
				changes, err := c.Diff(t.Context(), instance("vnf-1"), nf.AdoptionSelector{}, of())
				if tc.says != "" {
					wantKind(t, err, nf.Unsupported)
				} else if err != nil || changes[0].Action != nf.Created {
					t.Errorf("%s: the change is %+v, %v", tc.reason, changes, err)
				}
				u.stop()
				_, err = c.Drift(t.Context(), instance("vnf-1"), of(), nil)
				if served := err == nil; served == (tc.says != "") {
					t.Errorf("%s: the next comparison, with the kinds of then, returns %v", tc.reason, err)
				}
			})
		})
	}
}
