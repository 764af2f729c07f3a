package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const statusBody = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`

// rich is served with Secrets, too.
func rich(req *http.Request) (*http.Response, error) {
	if req.URL.Path == "/api/v1" {
		return answer(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[
			{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["get","list","watch","patch","delete"]},
			{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["get","list","watch","patch","delete"]}]}`)
	}
	return served(req)
}

// TestReadCountsAll is about the objects of several places, which are in memory at
// the same time.
func TestReadCountsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","namespace":"ns","uid":"u","annotations":{"a":%q}}}]}`, strings.Repeat("x", 64<<10))
		p, _ := stubbed(map[string]stub{"east": func(req *http.Request) (*http.Response, error) {
			if strings.HasPrefix(req.URL.Path, "/api/v1/namespaces/ns/") {
				kind := map[bool]string{true: "ConfigMap", false: "Secret"}[strings.HasSuffix(req.URL.Path, "/configmaps")]
				return answer(200, strings.Replace(strings.Replace(one, `"List"`, `"`+kind+`List"`, 1), `{"metadata":{"name"`, `{"apiVersion":"v1","kind":"`+kind+`","metadata":{"name"`, 1))
			}
			return rich(req)
		}})
		p.cfg.Parallel, p.cfg.limits.kept = 1, 3*(64<<10) // one fits, as a byte weighs two
		c := opening(t, p, "east")
		secret := awaited
		secret.Kind = "Secret"
		got, err := c.Read(t.Context(), instance("vnf-1"), []nf.Ref{awaited, secret})
		if err != nil {
			t.Fatal(err)
		}
		unknown := 0
		for _, u := range got {
			if text(u, "status", "phase") == string(nf.Unknown) {
				unknown++
			}
		}
		if kept := c.transport.usage.kept.Load(); unknown != 1 || kept != 0 {
			t.Errorf("%d of 2 objects are over the limit, want 1; %d bytes are counted at the end", unknown, kept)
		}
	})
}

// TestReasonIsBounded is about a statusBody that is as long as one may be.
func TestReasonIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/configmaps") {
				return answer(403, fmt.Sprintf(statusBody, strings.Repeat("x", 100<<10), "Forbidden", 403))
			}
			return served(req)
		})
		health, err := c.Health(t.Context(), instance("vnf-1"), []nf.Ref{awaited})
		objects, readErr := c.Read(t.Context(), instance("vnf-1"), []nf.Ref{awaited})
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		for _, says := range []string{health[0].Message, text(objects[0], "status", "message")} {
			if len(says) > longestMessage || !strings.Contains(says, "xxx") {
				t.Errorf("the reason has %d bytes, want %d at most", len(says), longestMessage)
			}
		}
	})
}

// TestIncompleteLists checks lists that break off: the pages that were read are not
// taken for the complete list.
func TestIncompleteLists(t *testing.T) {
	first := func(more string) (*http.Response, error) { return mapList(more, ofVNF("vnf-1", "a")) }
	many := make([]string, mostFound+1)
	for i := range many {
		many[i] = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`
	}
	cases := map[string]struct {
		reason string
		list   stub
		want   int
		fails  nf.Kind // Internal: it does not
		asked  int
	}{
		"gone on a later page": {"the kind is not served any more, so there are none", func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("continue") == "" {
				return first("more")
			}
			return answer(404, fmt.Sprintf(statusBody, "gone", "NotFound", 404))
		}, 0, nf.Internal, 2},
		"too many": {"to ask again would not make them fewer", func(*http.Request) (*http.Response, error) { return mapList("", many...) }, 0, nf.TooLarge, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				_, c, _ := alone(t, lists(func(req *http.Request) (*http.Response, error) { asked++; return tc.list(req) }))
				found, err := c.Find(t.Context(), Selection{APIVersion: "v1", Kind: "ConfigMap"})
				if (err != nil) != (tc.fails != nf.Internal) || nf.KindOf(err) != tc.fails || len(found) != tc.want || asked != tc.asked {
					t.Errorf("%s: %d objects after %d requests, %v", tc.reason, len(found), asked, err)
				}
			})
		})
	}
}

// TestVolumeClaimsOfOddRegions is about what cannot be listed to the end: a claim
// that is not found is not deleted.
func TestVolumeClaimsOfOddRegions(t *testing.T) {
	many := make([]string, mostFound+1)
	for i := range many {
		many[i] = `{"metadata":{"name":"c","namespace":"ns"}}`
	}
	cases := map[string]struct {
		reason string
		region stub
		fails  nf.Kind // Internal: it does not
	}{
		"too many claims": {"some would stay, and the change would succeed", func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/persistentvolumeclaims") {
				return mapList("", many...)
			}
			return served(req)
		}, nf.TooLarge},
		"no StatefulSets": {"there are none of a kind that is not served", func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/statefulsets") {
				return answer(404, fmt.Sprintf(statusBody, "gone", "NotFound", 404))
			}
			return served(req)
		}, nf.Internal},
		"no pods": {"likewise", func(req *http.Request) (*http.Response, error) {
			switch {
			case strings.HasSuffix(req.URL.Path, "/pods"):
				return answer(404, fmt.Sprintf(statusBody, "gone", "NotFound", 404))
			case strings.HasSuffix(req.URL.Path, "/persistentvolumeclaims"):
				return mapList("", many[0])
			}
			return served(req)
		}, nf.Internal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c, _ := alone(t, tc.region)
				_, err := c.VolumeClaims(t.Context(), instance("vnf-1"), []nf.Ref{{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: "ns", Name: "db"}}, nil)
				if (err != nil) != (tc.fails != nf.Internal) || nf.KindOf(err) != tc.fails {
					t.Errorf("%s: %v", tc.reason, err)
				}
			})
		})
	}
}
