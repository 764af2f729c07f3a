package cluster

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestReadsWhatCanBeRead is about a region that answers, but not for every kind:
// a missing report for one object must not hide the others.
func TestReadsWhatCanBeRead(t *testing.T) {
	const (
		list      = `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%]}`
		live      = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","uid":"u","labels":{"k8splugin.io/rb-instance-id":"vnf-1"}}}`
		forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":"Forbidden","code":403}`
		missing   = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		groups    = `{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}]}`
	)
	gizmo := nf.Ref{Group: "example.org", Version: "v1", Kind: "Gizmo", Namespace: "ns", Name: "g"}
	cases := map[string]struct {
		reason string
		groups string // the group versions that exist
		api    stub   // of the group
		core   stub   // of the objects of the core group; nil: the ConfigMap
		refs   []nf.Ref
		want   []nf.Status
		says   string
		fails  nf.Kind // Internal: it does not
	}{
		"forbidden": {
			reason: "the credential may not list one kind", groups: groups, api: serving(403, forbidden),
			refs: []nf.Ref{awaited, gizmo}, want: []nf.Status{nf.Current, nf.Unknown}, says: "you may not",
		},
		"nothing but forbidden": {
			reason: "a refusal is an answer, even if there is no other", groups: groups, api: serving(403, forbidden),
			refs: []nf.Ref{gizmo}, want: []nf.Status{nf.Unknown}, says: "you may not",
		},
		"API away": {
			reason: "the server of an aggregated API is away, and was before it was asked for the first time", groups: groups, api: constant(503, ""),
			refs: []nf.Ref{awaited, gizmo}, want: []nf.Status{nf.Current, nf.Unknown}, says: "example.org/v1",
		},
		"API gone away": {
			reason: "the server of an aggregated API went away later", groups: groups, api: serving(503, ""),
			refs: []nf.Ref{awaited, gizmo}, want: []nf.Status{nf.Current, nf.Unknown}, says: "cannot list Gizmo objects",
		},
		"not served": {
			reason: "what has no API may be there all the same", api: constant(404, missing),
			refs: []nf.Ref{awaited, gizmo}, want: []nf.Status{nf.Current, nf.Unknown}, says: "does not serve",
		},
		"not served any more": {
			reason: "its definition went away after the API was read", groups: groups, api: serving(404, missing),
			refs: []nf.Ref{awaited, gizmo}, want: []nf.Status{nf.Current, nf.Unknown}, says: "does not serve",
		},
		"region away": {
			reason: "without any list there is no report", groups: groups, api: serving(503, ""), core: constant(503, ""),
			refs: []nf.Ref{awaited, gizmo}, fails: nf.Unreachable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
					switch {
					case req.URL.Path == "/apis":
						return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+tc.groups+`]}`)
					case strings.HasPrefix(req.URL.Path, "/apis/example.org"):
						return tc.api(req)
					case strings.HasSuffix(req.URL.Path, "/configmaps") && tc.core != nil:
						return tc.core(req)
					case strings.HasSuffix(req.URL.Path, "/configmaps"):
						return answer(200, strings.Replace(list, "%", live, 1))
					}
					return served(req)
				})
				health, err := c.Health(t.Context(), instance("vnf-1"), tc.refs)
				objects, readErr := c.Read(t.Context(), instance("vnf-1"), tc.refs)
				if tc.fails != nf.Internal {
					wantKind(t, err, tc.fails)
					wantKind(t, readErr, tc.fails)
					return
				}
				if err != nil || readErr != nil {
					t.Fatalf("%s: %v, %v", tc.reason, err, readErr)
				}
				for i, want := range tc.want {
					if health[i].Status != want || want == nf.Unknown && !strings.Contains(health[i].Message, tc.says) {
						t.Errorf("%s: %s is %s (%s), want %s that says %q", tc.reason, tc.refs[i], health[i].Status, health[i].Message, want, tc.says)
					}
					if tc.says == "does not serve" && i == 1 {
						if objects[i] != nil {
							t.Errorf("%s: there is nothing to read of %s: %v", tc.reason, tc.refs[i], objects[i])
						}
						continue
					}
					shown, known := objects[i]["status"].(map[string]any)
					if unknown := want == nf.Unknown; objects[i] == nil || known != unknown || known && !strings.Contains(shown["message"].(string), tc.says) {
						t.Errorf("%s: %s is read as %v", tc.reason, tc.refs[i], objects[i])
					}
				}
			})
		})
	}
}

// serving returns the stub of an API that serves Gizmos and gives the same
// response to all other requests.
func serving(code int, body string) stub {
	const resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v1","resources":[
		{"name":"gizmos","namespaced":true,"kind":"Gizmo","verbs":["get","list","watch","patch","delete"]}]}`
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/apis/example.org/v1" {
			return answer(200, resources)
		}
		return answer(code, body)
	}
}

func constant(code int, body string) stub {
	return func(*http.Request) (*http.Response, error) { return answer(code, body) }
}

// TestHealthWithinRights has the API server itself refuse a list.
func TestHealthWithinRights(t *testing.T) {
	c, ns := sandbox(t)
	const vnf = "vnf-1"
	as := asProject(t, c, ns)
	us := append(objects(t, vnf, ns, `{apiVersion: v1, kind: Secret, metadata: {name: a}}`), configMap(t, vnf, ns, "a", "1"))
	mustApply(t, c, vnf, us...)
	health, err := as.Health(t.Context(), instance(vnf), refs(us...))
	if err != nil {
		t.Fatalf("what may be read is read: %v", err)
	}
	if health[0].Status != nf.Unknown || !strings.Contains(health[0].Message, "forbidden") || health[1].Status != nf.Current {
		t.Errorf("one kind may not be listed: %+v", health)
	}
}

// TestFollowOfHiddenKind checks that a follower does not wait for an API that may
// never be served again, while the region responds.
func TestFollowOfHiddenKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
			switch {
			case req.URL.Path == "/apis":
				return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}]}]}`)
			case strings.HasPrefix(req.URL.Path, "/apis/example.org"):
				return answer(503, "")
			}
			return served(req)
		})
		w := NewSharedWatch(func(context.Context, string) (*Cluster, error) { return c, nil })
		for _, err := range w.Subscribe(t.Context(), "east", nf.Ref{Group: "example.org", Version: "v1", Kind: "Gizmo"}) {
			wantKind(t, err, nf.Failed)
		}
	})
}
