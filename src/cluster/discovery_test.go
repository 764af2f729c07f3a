package cluster

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// growing is a region that may serve Gizmos.
type growing struct {
	defined     bool // the group exists
	down        bool // the server of the group does not respond
	discoveries int
}

func (g *growing) respond(req *http.Request) (*http.Response, error) {
	const group = `{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}]}`
	switch path := req.URL.Path; {
	case path == "/apis":
		g.discoveries++
		if !g.defined {
			return served(req)
		}
		return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+group+`]}`)
	case path == "/version":
		return answer(200, `{"gitVersion":"v1.35.0"}`)
	case strings.HasPrefix(path, "/apis/example.org") && g.down:
		return answer(503, "")
	case path == "/apis/example.org/v1":
		return answer(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v1","resources":[
			{"name":"gizmos","namespaced":true,"kind":"Gizmo","verbs":["get","list","watch","patch","delete"]}]}`)
	case strings.HasSuffix(path, "/gizmos/g"):
		return answer(200, `{"apiVersion":"example.org/v1","kind":"Gizmo","metadata":{"namespace":"ns","name":"g"}}`)
	}
	return served(req)
}

// TestKindsAge installs a CustomResourceDefinition after the kinds were read.
func TestKindsAge(t *testing.T) {
	cases := map[string]func(t *testing.T, c *Cluster) (sees bool, err error){
		"RegionCapabilities": func(t *testing.T, c *Cluster) (bool, error) {
			is, err := c.RegionCapabilities(t.Context(), false)
			return is.Serves("example.org/v1/Gizmo"), err
		},
		"Capabilities": func(t *testing.T, c *Cluster) (bool, error) {
			is, err := c.Capabilities(t.Context())
			return slices.Contains(is.APIs, "example.org/v1/Gizmo"), err
		},
		"Lookup": func(t *testing.T, c *Cluster) (bool, error) {
			object, err := c.Lookup(t.Context(), gizmo("v1"))
			return object != nil, err
		},
		"Scope": func(t *testing.T, c *Cluster) (bool, error) {
			namespaced, is, err := c.Scope(t.Context(), gizmo("v1"))
			return is && namespaced, err
		},
	}
	for name, see := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &growing{}
				_, c, _ := alone(t, g.respond)
				steps := []struct {
					reason  string
					pass    time.Duration
					defined bool
					want    bool
					most    int // discoveries so far
				}{
					{"the region does not serve the kind", 0, false, false, 1},
					{"it does, but the kinds were just read", kindsTime / 2, true, false, 1},
					{"the kinds are old", kindsTime/2 + time.Second, true, true, 2},
					{"the kind is known", kindsTime / 2, true, true, 2},
				}
				for _, s := range steps {
					g.defined = s.defined
					until(s.pass)
					if sees, err := see(t, c); sees != s.want || err != nil || g.discoveries > s.most {
						t.Errorf("%s: seen: %t, after %d discoveries, %v", s.reason, sees, g.discoveries, err)
					}
				}
			})
		})
	}
}

// TestLookupOfHiddenKind is about an aggregated API that was down when the kinds were
// read: the object may exist.
func TestLookupOfHiddenKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &growing{defined: true, down: true}
		_, c, _ := alone(t, g.respond)
		_, err := c.Lookup(t.Context(), gizmo("v1"))
		wantKind(t, err, nf.Unreachable)
		_, _, err = c.Scope(t.Context(), gizmo("v1"))
		wantKind(t, err, nf.Unreachable)
		if object, err := c.Lookup(t.Context(), awaited); err != nil || object == nil {
			t.Errorf("kinds of other groups are known: %v, %v", object, err)
		}
		g.down = false
		if object, err := c.Lookup(t.Context(), gizmo("v1")); err != nil || object == nil {
			t.Errorf("the API is up again: %v, %v", object, err)
		}
	})
}

// TestIncompleteKindsAge counts the discoveries of a region with an aggregated API that
// is down.
func TestIncompleteKindsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &growing{defined: true, down: true}
		_, c, _ := alone(t, g.respond)
		steps := []struct {
			reason string
			pass   time.Duration
			want   int // discoveries so far
		}{
			{"the kinds are not known", 0, 1},
			{"they were just read", kindsTime / 2, 1},
			{"a group has been missing for long", kindsTime, 2},
			{"it was there the last time", 2 * kindsTime, 2},
		}
		for _, s := range steps {
			until(s.pass)
			g.down = s.want == 1
			if _, err := c.client.apis.kinds(t.Context(), nil); err != nil || g.discoveries != s.want {
				t.Errorf("%s: %d discoveries, want %d; %v", s.reason, g.discoveries, s.want, err)
			}
		}
	})
}

// TestVersionAges updates the API server after its version was read.
func TestVersionAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version, fail := "v1.35.0", false
		_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
			switch {
			case req.URL.Path != "/version":
				return served(req)
			case fail:
				return answer(503, "")
			}
			return answer(200, `{"gitVersion":"`+version+`"}`)
		})
		steps := []struct {
			reason, is string
			fail       bool
			pass       time.Duration
			want       string // empty: an error
		}{
			{"a failure is not remembered", "v1.35.0", true, 0, ""},
			{"the version is read", "v1.35.0", false, time.Minute, "v1.35.0"},
			{"it was just read", "v1.36.0", false, kindsTime / 2, "v1.35.0"},
			{"it is old", "v1.36.0", false, kindsTime / 2, "v1.36.0"},
			{"an old one is not used instead of one that cannot be read", "v1.36.0", true, kindsTime, ""},
		}
		for _, s := range steps {
			version, fail = s.is, s.fail
			until(s.pass)
			got, err := c.Capabilities(t.Context())
			if got.Version != s.want || (err == nil) != (s.want != "") {
				t.Errorf("%s: the version is %q, %v; want %q", s.reason, got.Version, err, s.want)
			}
		}
	})
}
