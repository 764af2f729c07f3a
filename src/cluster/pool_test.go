package cluster

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

func TestPool(t *testing.T) {
	one := accessTo(t, []byte(testConfig(`server: "https://127.0.0.1:1"`, `token: a`)))
	two := accessTo(t, []byte(testConfig(`server: "https://127.0.0.1:1"`, `token: b`)))
	same := nf.Access{Server: "https://127.0.0.1:1", Token: nf.Secret("a")}
	p := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback()})
	open := func(id string, access nf.Access) *Cluster {
		t.Helper()
		c, err := p.Open(id, access)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := open("east", one)
	if open("east", one) != first || open("east", same) != first {
		t.Error("an equal access must give the same cluster, however it was given")
	}
	west := open("west", one)
	if west == first || west.transport == first.transport || west.transport.transport == first.transport.transport {
		t.Error("two regions must share nothing, even with one kubeconfig")
	}
	changed := open("east", two)
	if changed == first || open("east", two) != changed {
		t.Error("a changed kubeconfig must replace the cluster at once, and once")
	}
	p.Forget("east")
	if open("east", two) == changed {
		t.Error("a forgotten region must be opened anew")
	}
	p.Forget("nowhere")
	_, err := p.Open("east", nf.Access{})
	wantKind(t, err, nf.Invalid)
}

// TestCanonical is about regions with one access: which of them stands for all.
func TestCanonical(t *testing.T) {
	one := accessTo(t, []byte(testConfig(`server: "https://127.0.0.1:1"`, `token: a`)))
	two := accessTo(t, []byte(testConfig(`server: "https://127.0.0.1:1"`, `token: b`)))
	renewed := one
	renewed.Renewed = &nf.RenewedToken{Token: nf.Secret("c")}
	p := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback()})
	steps := []struct {
		reason string
		open   map[string]nf.Access
		forget string
		want   map[string]string
	}{
		{"a region that is not open is its own", nil, "", map[string]string{"east": "east"}},
		{"so is one alone", map[string]nf.Access{"west": one}, "", map[string]string{"west": "west"}},
		{"the first one stands for all, though a token was renewed", map[string]nf.Access{"east": renewed}, "", map[string]string{"east": "west", "west": "west"}},
		{"another credential may show other objects", map[string]nf.Access{"south": two}, "", map[string]string{"south": "south", "east": "west"}},
		{"an access that changes changes the region that stands for it", map[string]nf.Access{"west": two}, "", map[string]string{"west": "south", "east": "east"}},
		{"a region that is deregistered stands for none", nil, "south", map[string]string{"west": "west", "south": "south"}},
		{"one that is registered again comes last", map[string]nf.Access{"south": two}, "", map[string]string{"west": "west", "south": "west"}},
	}
	for _, s := range steps {
		for id, access := range s.open {
			if _, err := p.Open(id, access); err != nil {
				t.Fatal(err)
			}
		}
		if s.forget != "" {
			p.Forget(s.forget)
		}
		for id, want := range s.want {
			if got := p.Canonical(id); got != want {
				t.Errorf("%s: %s stands for %s, want %s", s.reason, got, id, want)
			}
		}
	}
}

// served is a stub of an API server that serves ConfigMaps, has none, and whose
// watches send no events.
func served(req *http.Request) (*http.Response, error) {
	switch {
	case req.URL.Query().Get("sendInitialEvents") != "":
		return unsupported(req)
	case req.URL.Query().Get("watch") != "":
		resp, err := answer(200, "")
		resp.Body = io.NopCloser(&drip{ctx: req.Context(), left: 1, pause: watchTime, end: io.EOF})
		return resp, err
	case req.URL.Path == "/api":
		return answer(200, `{"kind":"APIVersions","versions":["v1"]}`)
	case req.URL.Path == "/apis":
		return answer(200, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case req.URL.Path == "/api/v1":
		return answer(200, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[
			{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["get","list","watch","patch","delete"]}]}`)
	}
	return answer(200, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
}

// unsupported refuses a watch that is to send the present state, as API servers
// before 1.32 do.
func unsupported(*http.Request) (*http.Response, error) {
	return answer(422, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is forbidden"}`)
}

// awaited is a ConfigMap that is not there.
var awaited = nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}

func TestRetire(t *testing.T) {
	retirements := map[string]struct {
		reason    string
		closePool func(p *Pool) error
	}{
		"forgotten": {"a region that is removed", func(p *Pool) error { p.Forget("east"); return nil }},
		"replaced": {"a region with another access", func(p *Pool) error {
			_, err := p.Open("east", accessAs("east", "another"))
			return err
		}},
	}
	waits := map[string]struct {
		region stub
		wait   func(t *testing.T, c *Cluster) error
	}{
		"watch": {served, func(t *testing.T, c *Cluster) (err error) {
			for _, err = range c.Watch(t.Context(), instance("vnf-1"), []nf.Change{{Ref: awaited}}) {
			}
			return err
		}},
		"watch that is taken up again": {
			func(req *http.Request) (*http.Response, error) {
				if req.URL.Query().Get("watch") != "" {
					return answer(429, "", "Retry-After", "5")
				}
				return served(req)
			},
			func(t *testing.T, c *Cluster) (err error) {
				for _, err = range c.Watch(t.Context(), instance("vnf-1"), []nf.Change{{Ref: awaited}}) {
				}
				return err
			},
		},
		"pause between attempts": {
			func(*http.Request) (*http.Response, error) { return answer(429, "", "Retry-After", "5") },
			func(t *testing.T, c *Cluster) error {
				_, err := c.EnsureNamespace(t.Context(), "ns", nf.DefaultProject)
				return err
			},
		},
	}
	for name, r := range retirements {
		for waiting, w := range waits {
			t.Run(name+" "+waiting, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, c, _ := alone(t, w.region)
					done := make(chan error)
					go func() { done <- w.wait(t, c) }()
					until(10 * time.Second)
					start := time.Now()
					if err := r.closePool(p); err != nil {
						t.Fatal(err)
					}
					err := <-done
					wantKind(t, err, nf.Unreachable)
					if nf.ReasonOf(err) != "replaced" || time.Since(start) > 0 {
						t.Errorf("%s ends a %s at once, reason replaced: %q after %v, %v", r.reason, waiting, nf.ReasonOf(err), time.Since(start), err)
					}
					err = c.tryOnce(t.Context())
					if nf.ReasonOf(err) != "replaced" {
						t.Errorf("%s is asked nothing more: %v", r.reason, err)
					}
				})
			})
		}
	}
}

func TestRetireLetsRequestsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c, _ := alone(t, func(*http.Request) (*http.Response, error) {
			<-time.After(10 * time.Second)
			return answer(200, `{}`)
		})
		done := make(chan error)
		go func() { done <- c.tryOnce(t.Context()) }()
		until(time.Second)
		p.Forget("east")
		if err := <-done; err != nil {
			t.Errorf("a request that is under way finishes: %v", err)
		}
	})
}

// TestRetireClosesConnections counts the connections of a server.
func TestRetireClosesConnections(t *testing.T) {
	closed := make(chan struct{}, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }))
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	s.StartTLS()
	defer s.Close()
	p := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback()})
	c, err := p.Open("east", accessTo(t, []byte(testConfig(trusted(s), "token: t"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.tryOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Forget("east")
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("the connection of a forgotten region stays open, with its credentials")
	}
}

func TestStates(t *testing.T) {
	p, _ := stubbed(map[string]stub{"east": well, "west": refusing})
	if got := p.State("east"); got.Condition != nf.RegionUnknown || got.Breaker != nf.BreakerClosed {
		t.Errorf("nothing is known of a region that was never opened: %+v", got)
	}
	if err := opening(t, p, "east").tryOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	opening(t, p, "west")
	conditions := map[string]nf.RegionCondition{}
	for id, s := range p.States() {
		conditions[id] = s.Condition
	}
	diff(t, "every region is told of", map[string]nf.RegionCondition{"east": nf.RegionAvailable, "west": nf.RegionUnknown}, conditions)
}
