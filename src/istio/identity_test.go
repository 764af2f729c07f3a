package istio_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/istio"
	"github.com/multicloud-k8s/k8splugin/src/simulator/istiod"
)

// sleep lets time pass in a bubble.
func sleep(t *testing.T, d time.Duration) {
	delay.For(t.Context(), d, nil)
	synctest.Wait()
}

func TestRenews(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		cfg    istiod.Config
		life   time.Duration
	}{
		"Day":          {"a certificate lives as long as the client asks", istiod.Config{}, 24 * time.Hour},
		"Intermediate": {"an intermediate authority signs", istiod.Config{Intermediate: true}, 24 * time.Hour},
		"Longer":       {"an authority of a longer maximum changes nothing", istiod.Config{MaxLifetime: 1000 * time.Hour}, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMesh(t, tc.cfg)
				i, began := m.identity(onap), time.Now()
				defer m.run(i)()
				first := i.Status()
				if first.ID != "spiffe://cluster.local/ns/onap/sa/k8splugin" || !first.Expires.Equal(began.Add(tc.life)) || first.Failures != 0 {
					t.Fatalf("%s: the first certificate is %+v", tc.reason, first)
				}
				sleep(t, tc.life*2/3-time.Second)
				if i.Status() != first {
					t.Fatalf("%s: it was renewed before two thirds of its lifetime: %+v", tc.reason, i.Status())
				}
				sleep(t, time.Second)
				if second := i.Status(); !second.Expires.Equal(began.Add(tc.life*2/3 + tc.life)) {
					t.Fatalf("%s: it was not renewed at two thirds of its lifetime: %+v", tc.reason, second)
				}
				keys := map[any]bool{}
				for _, e := range m.istiod.Journal() {
					keys[string(e.CSR.RawSubjectPublicKeyInfo)] = true
					if e.Code != codes.OK || e.Cluster != "c1" || e.Lifetime != 24*time.Hour || len(e.CSR.URIs) > 0 {
						t.Errorf("%s: it sent %+v", tc.reason, e)
					}
				}
				if len(keys) != 2 {
					t.Errorf("%s: %d keys for 2 certificates", tc.reason, len(keys))
				}
			})
		})
	}
}

// TestOutage has istiod fail until the certificate expires, and beyond.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, istiod.Config{})
		i := m.identity(onap)
		defer m.run(i)()
		first := i.Status()
		m.istiod.Unavailable(-1)
		sleep(t, 24*time.Hour-time.Second)
		if now := i.Status(); now.Expires != first.Expires || now.Failures < 400 || now.Failures > 1100 {
			t.Fatalf("during the outage it is %+v", now)
		}
		if err := handshake(t, i.ServerConfig(), i.ClientConfig()); err != nil {
			t.Errorf("the present certificate must be used until its end: %v", err)
		}
		sleep(t, time.Second)
		if err := handshake(t, i.ServerConfig(), i.ClientConfig()); err == nil {
			t.Error("an expired certificate is used")
		}
		m.istiod.Repair()
		sleep(t, time.Minute)
		if err := handshake(t, i.ServerConfig(), i.ClientConfig()); err != nil || !i.Status().Expires.After(first.Expires) {
			t.Errorf("it does not recover: %v, %+v", err, i.Status())
		}
	})
}

// TestRetriesSoon has istiod fail a few times at the start.
func TestRetriesSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, istiod.Config{})
		m.istiod.Unavailable(5)
		i := m.identity(onap)
		if err := handshake(t, i.ServerConfig(), i.ClientConfig()); err == nil {
			t.Error("a handshake succeeds without a certificate")
		}
		defer m.run(i)()
		sleep(t, 4*time.Second)
		if s := i.Status(); s.ID == "" || s.Failures != 5 {
			t.Errorf("after 5 failures it is %+v", s)
		}
	})
}

// TestReadsTheToken has the kubelet replace the token.
func TestReadsTheToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, istiod.Config{})
		i := m.identity(onap)
		defer m.run(i)()
		m.accept("eyJ.second", "onap:renamed")
		m.write("token", "eyJ.second")
		sleep(t, 16*time.Hour)
		if s := i.Status(); s.ID != "spiffe://cluster.local/ns/onap/sa/renamed" || s.Failures != 0 {
			t.Errorf("with a new token it is %+v", s)
		}
	})
}

// TestFollowsTheRoots rotates the root of the mesh.
func TestFollowsTheRoots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, istiod.Config{})
		old, renewed := m.identity(onap), m.identity(onap)
		stop := m.run(old)
		stop() // and so it keeps the certificate of the old root
		defer m.run(renewed)()
		if err := m.istiod.Rotate(); err != nil {
			t.Fatal(err)
		}
		m.write("root", m.istiod.Roots())
		sleep(t, 30*time.Second)
		if !renewed.Status().Obtained.After(old.Status().Obtained) {
			t.Fatal("a new root does not renew the certificate")
		}
		if err := handshake(t, renewed.ServerConfig(), old.ClientConfig()); err == nil {
			t.Error("a client that does not know the new root accepts it")
		}
		if err := handshake(t, old.ServerConfig(), renewed.ClientConfig()); err == nil {
			t.Error("a server that does not know the new root accepts it")
		}
		m.istiod.Retire()
		m.write("root", m.istiod.Roots())
		sleep(t, 30*time.Second)
		if err := handshake(t, renewed.ServerConfig(), renewed.ClientConfig()); err != nil {
			t.Errorf("with the new root alone: %v", err)
		}
		if err := handshake(t, old.ServerConfig(), renewed.ClientConfig()); err == nil {
			t.Error("a root that was retired is trusted")
		}
		if s := renewed.Status(); s.Failures != 0 {
			t.Errorf("the rotation caused %d failures", s.Failures)
		}
	})
}

// TestTrustsNewRoots rotates the root of the mesh while istiod does not respond to
// one of its clients.
func TestTrustsNewRoots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, istiod.Config{})
		waits := m.identity(onap)
		defer m.run(waits)()
		first := waits.Status()
		if err := m.istiod.Rotate(); err != nil {
			t.Fatal(err)
		}
		m.write("root", m.istiod.Roots())
		m.istiod.Unavailable(-1)
		sleep(t, 30*time.Second)
		m.istiod.Repair()
		renewed := m.identity(onap)
		defer m.run(renewed)() // at once, before the other tries again
		if now := waits.Status(); now.Failures == 0 || now.Expires != first.Expires {
			t.Fatalf("istiod must not have responded to it: %+v", now)
		}
		for role, err := range map[string]error{
			"client": handshake(t, waits.ServerConfig(), renewed.ClientConfig()),
			"server": handshake(t, renewed.ServerConfig(), waits.ClientConfig()),
		} {
			if err != nil {
				t.Errorf("a peer of the new root as %s: %v", role, err)
			}
		}
	})
}

// TestRefuses has istiod respond with chains that are wrong, or not at all.
func TestRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		given  func(m *mesh)
		want   string // in the log
	}{
		"Alone":    {"a chain has at least two elements", edit(func(c []string) []string { return c[:1] }), "it must have a certificate and the roots"},
		"Empty":    {"a response has a chain", edit(func([]string) []string { return nil }), "the chain has 0 elements"},
		"OtherKey": {"a certificate of another key is of no use", edit(func(c []string) []string { return []string{c[1], c[1]} }), "for another key"},
		"Garbage":  {"a leaf is a certificate", edit(func(c []string) []string { return []string{"x", c[1]} }), "no certificate"},
		"NoRoots":  {"the roots are certificates", edit(func(c []string) []string { return []string{c[0], "x"} }), "no certificate"},
		"Key": {"a chain has certificates only", edit(func(c []string) []string {
			return []string{"-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----\n", c[1]}
		}), "not a certificate"},
		"Token":     {"a token must be that of a live account", func(m *mesh) { m.accept("other", "a:b") }, "Unauthenticated; check the token's audience"},
		"NoToken":   {"the token's file must exist", func(m *mesh) { m.write("token", "") }, "cannot read the token"},
		"NoRoot":    {"the roots' file must have a certificate", func(m *mesh) { m.write("root", "x") }, "cannot use the roots of the mesh"},
		"Impostor":  {"istiod must prove that it is of the mesh", func(m *mesh) { m.write("root", other(m)) }, "cannot connect to istiod"},
		"Exhausted": {"istiod may be busy", func(m *mesh) { m.istiod.Script(istiod.Fault{Times: -1, Code: codes.ResourceExhausted}) }, "ResourceExhausted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMesh(t, istiod.Config{})
				tc.given(m)
				i := m.identity(onap)
				defer m.run(i)()
				if s := i.Status(); s.ID != "" || s.Failures != 1 || !strings.Contains(m.log.String(), tc.want) {
					t.Errorf("%s: it is %+v, and the log\n%s", tc.reason, s, m.log)
				}
			})
		})
	}
}

// edit has istiod change all its chains.
func edit(change func([]string) []string) func(*mesh) {
	return func(m *mesh) { m.istiod.Script(istiod.Fault{Times: -1, Edit: change}) }
}

// other returns the roots of another mesh.
func other(m *mesh) string {
	m.Helper()
	s, err := istiod.New(istiod.Config{Review: unknownToken})
	if err != nil {
		m.Fatal(err)
	}
	return s.Roots()
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	sound := func() istio.Config {
		return istio.Config{Address: "istiod:15012", TokenFile: "t", RootFile: "r", Peers: []string{"spiffe://cluster.local/"}}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*istio.Config)
	}{
		"Address": {"an address has a port", func(c *istio.Config) { c.Address = "istiod" }},
		"Token":   {"the token is in a file", func(c *istio.Config) { c.TokenFile = "" }},
		"Root":    {"the roots are in a file", func(c *istio.Config) { c.RootFile = "" }},
		"NoPeers": {"the operator says which peers are allowed", func(c *istio.Config) { c.Peers = nil }},
		"Peers":   {"a peer is a SPIFFE id", func(c *istio.Config) { c.Peers = []string{"so"} }},
	} {
		cfg := sound()
		tc.change(&cfg)
		if _, err := istio.New(cfg); err == nil {
			t.Errorf("%s: %s: it is accepted", name, tc.reason)
		}
	}
	if _, err := istio.New(sound()); err != nil {
		t.Error(err)
	}
}
