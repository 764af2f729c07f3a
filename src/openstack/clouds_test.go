package openstack_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/openstack"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/openstack"
)

func TestLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.clouds()
		begin := time.Now()
		machines, err := made(t.Context(), c)
		must(t, err)
		if took := time.Since(begin); took < 40*time.Second || took > time.Minute {
			t.Errorf("the machines ran after %s, want that Await waits for ACTIVE", took)
		}
		for i, m := range machines {
			if m.Name != names[i] || m.State != nf.MachineRunning || !strings.HasPrefix(m.Address, "10.0.0.") || m.Address != m.Addresses["management"] ||
				!strings.HasPrefix(m.Addresses["net-2"], "192.0.2.") {
				t.Errorf("machine %d is %+v, want it running with an address on each network", i, m)
			}
		}
		_ = w.Journal()
		again, err := made(t.Context(), c)
		must(t, err)
		if diff := cmp.Diff(machines, again); diff != "" {
			t.Errorf("a repeated call changes the machines:\n%s", diff)
		}
		for _, e := range w.Journal() {
			if e.Method != http.MethodGet && !strings.HasSuffix(e.URI, "/auth/tokens") {
				t.Errorf("a repeated call sends %s %s", e.Method, e.URI)
			}
		}
		must(t, c.Delete(t.Context(), cloud(), group(), "worker2"))
		wantServers(t, "one is deleted", w, "master1-edge ACTIVE", "worker1-edge ACTIVE")
		if got, want := w.Ports(), []string{"master1-edge-0", "master1-edge-1", "worker1-edge-0", "worker1-edge-1"}; !slices.Equal(got, want) {
			t.Errorf("the ports are %q, want %q: Nova leaves ports that it did not create", got, want)
		}
		must(t, c.Delete(t.Context(), cloud(), group()))
		wantServers(t, "all are deleted", w)
		if got := w.Ports(); len(got) > 0 {
			t.Errorf("the ports %q remain", got)
		}
	})
}

// TestOthers proves that only the machines of the owner are changed.
func TestOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.clouds()
		other := group()
		other.Owner = "uid-2" // a site of another service with the same name
		must(t, c.Create(t.Context(), cloud(), other, []string{"master1"}))
		must(t, c.Create(t.Context(), cloud(), group(), []string{"master1"}))
		must(t, c.Delete(t.Context(), cloud(), group()))
		wantServers(t, "the other's is not deleted", w, "master1-edge BUILD")
		left, err := c.Machines(t.Context(), cloud(), other)
		must(t, err)
		if len(left) != 1 || len(w.Ports()) != 2 {
			t.Errorf("the other owner has %+v with the ports %q", left, w.Ports())
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	bad := func(edit func(*nf.Machines)) func(context.Context, *openstack.Clouds) error {
		return func(ctx context.Context, c *openstack.Clouds) error {
			return c.Create(ctx, cloud(), group(edit), names)
		}
	}
	login := func(edit func(*nf.OpenStack)) func(context.Context, *openstack.Clouds) error {
		return func(ctx context.Context, c *openstack.Clouds) error {
			o := cloud()
			edit(&o)
			return c.Create(ctx, o, group(), names)
		}
	}
	cases := map[string]struct {
		reason string
		quota  simulator.Quota
		fault  simulator.Fault
		fail   string                                         // the message with which worker1 fails
		call   func(context.Context, *openstack.Clouds) error // default: made
		kind   nf.Kind
		why    string // reason of the error
		text   string // in the error
		heals  bool   // the call succeeds when it is repeated
	}{
		"Password": {reason: "a wrong password is a missing permission", call: login(func(o *nf.OpenStack) { o.Password = nf.Secret("x") }), kind: nf.Forbidden, why: nf.ReasonUnauthorized},
		"Project":  {reason: "so is another project", call: login(func(o *nf.OpenStack) { o.Project = "x" }), kind: nf.Forbidden, why: nf.ReasonUnauthorized},
		"Domain":   {reason: "so is another domain", call: login(func(o *nf.OpenStack) { o.UserDomain = "x" }), kind: nf.Forbidden, why: nf.ReasonUnauthorized},
		"Plain":    {reason: "a password is not sent without TLS", call: login(func(o *nf.OpenStack) { o.AuthURL = "http://cloud.example.com/identity/v3" }), kind: nf.Forbidden, text: "without TLS"},
		"Metadata": {reason: "users cannot call the metadata service", call: login(func(o *nf.OpenStack) { o.AuthURL = "https://169.254.169.254/v3" }), kind: nf.Forbidden, text: "only the operator"},
		"UserInfo": {reason: "a URL has no password", call: login(func(o *nf.OpenStack) { o.AuthURL = "https://ann:" + password + "@cloud.example.com/v3" }), kind: nf.Forbidden, text: "contains a user or password"},
		"URL":      {reason: "an address is a URL", call: login(func(o *nf.OpenStack) { o.AuthURL = "://" + password }), kind: nf.Forbidden, text: "is not a URL"},
		"Image":    {reason: "an unknown image is named", call: bad(func(m *nf.Machines) { m.Image = "none" }), kind: nf.NotFound, text: `image "none"`},
		"ImageID":  {reason: "an unknown id is one, too", call: bad(func(m *nf.Machines) { m.Image = "22222222-1111-1111-1111-111111111111" }), kind: nf.NotFound},
		"Twice":    {reason: "a name of several images is ambiguous", call: bad(func(m *nf.Machines) { m.Image = "twice" }), kind: nf.Conflict, text: "give the id"},
		"Flavor":   {reason: "an unknown flavor is named", call: bad(func(m *nf.Machines) { m.Flavor = "none" }), kind: nf.NotFound, text: `flavor "none"`},
		"Network":  {reason: "an unknown network is named", call: bad(func(m *nf.Machines) { m.Networks = []string{"none"} }), kind: nf.NotFound, text: `network "none"`},
		"Group":    {reason: "an unknown security group is named", call: bad(func(m *nf.Machines) { m.SecurityGroups = []string{"none"} }), kind: nf.NotFound, text: `security group "none"`},
		"KeyPair":  {reason: "Nova's message says what is wrong", call: bad(func(m *nf.Machines) { m.KeyPair = "none" }), kind: nf.Failed, text: "Invalid key_name"},

		"Servers":      {reason: "Nova reports its quota with 403 and a message", quota: simulator.Quota{Servers: 2}, kind: nf.Forbidden, text: "Quota exceeded"},
		"Ports":        {reason: "Neutron reports its quota with a type", quota: simulator.Quota{Ports: 3}, kind: nf.TooLarge, text: "Quota exceeded"},
		"Conflict":     {reason: "409 is a conflict", fault: simulator.Fault{Method: http.MethodPost, Path: "/servers", Status: http.StatusConflict}, kind: nf.Conflict, heals: true},
		"Large":        {reason: "413 is a quota", fault: simulator.Fault{Method: http.MethodPost, Path: "/servers", Status: http.StatusRequestEntityTooLarge}, kind: nf.TooLarge, heals: true},
		"Rate":         {reason: "429 passes", fault: simulator.Fault{Path: "/servers", Status: http.StatusTooManyRequests}, kind: nf.TooManyRequests, heals: true},
		"Error":        {reason: "500 may pass", fault: simulator.Fault{Path: "/ports", Status: http.StatusInternalServerError}, kind: nf.Unreachable, why: nf.ReasonUnavailable, heals: true},
		"Lost":         {reason: "a server whose response was lost is found", fault: simulator.Fault{Method: http.MethodPost, Path: "/servers", Cut: true}, kind: nf.Unreachable, heals: true},
		"LostPort":     {reason: "and so is a port", fault: simulator.Fault{Method: http.MethodPost, Path: "/ports", Cut: true}, kind: nf.Unreachable, heals: true},
		"Slow":         {reason: "a request takes a minute at most", fault: simulator.Fault{Path: "/flavors", Delay: time.Hour}, kind: nf.Unreachable, why: nf.ReasonTimeout, heals: true},
		"Redirect":     {reason: "a token is not sent elsewhere", fault: simulator.Fault{Path: "/flavors", Status: http.StatusFound}, kind: nf.Failed, heals: true},
		"Unauthorized": {reason: "one 401 is a token that has expired", fault: simulator.Fault{Path: "/servers", Status: http.StatusUnauthorized}, kind: nf.Internal},
		"Denied":       {reason: "two are a missing permission", fault: simulator.Fault{Path: "/servers", Status: http.StatusUnauthorized, Times: 2}, kind: nf.Forbidden, why: nf.ReasonUnauthorized, heals: true},
		"Failed":       {reason: "a server that fails is reported with Nova's message", fail: "No valid host was found.", kind: nf.Failed, text: "No valid host"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *simulator.Config) { c.Quota = tc.quota })
				if tc.fault.Path != "" {
					w.Script(tc.fault)
				}
				w.Fail("worker1-edge", tc.fail)
				if tc.call == nil {
					tc.call = func(ctx context.Context, c *openstack.Clouds) error { _, err := made(ctx, c); return err }
				}
				c := w.clouds()
				err := tc.call(t.Context(), c)
				wantNoSecret(t, err)
				if (err == nil) != (tc.kind == nf.Internal) || nf.KindOf(err) != tc.kind || tc.why != "" && nf.ReasonOf(err) != tc.why || err != nil && !strings.Contains(err.Error(), tc.text) {
					t.Errorf("%s: the error is %v (%s, %s), want %s, %s with %q", tc.reason, err, nf.KindOf(err), nf.ReasonOf(err), tc.kind, tc.why, tc.text)
				}
				if tc.heals {
					must(t, tc.call(t.Context(), c))
					wantServers(t, tc.reason, w, "master1-edge ACTIVE", "worker1-edge ACTIVE", "worker2-edge ACTIVE")
					if ports := w.Ports(); len(ports) != 6 {
						t.Errorf("%s: the ports are %q, want two for each server", tc.reason, ports)
					}
				}
			})
		})
	}
}

// TestExpiry lets the token expire while servers start.
func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *simulator.Config) { c.Life = 12 * time.Second })
		_, err := made(t.Context(), w.clouds())
		must(t, err)
	})
}

// TestPatience proves that waiting ends.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *simulator.Config) { c.Boot = time.Hour })
		if _, err := made(t.Context(), w.clouds()); nf.KindOf(err) != nf.Timeout {
			t.Errorf("the error is %v, want a timeout: a server stays in BUILD", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := made(ctx, w.clouds()); err != context.DeadlineExceeded { //nolint:errorlint // the cause itself
			t.Errorf("the error is %v, want that of the context", err)
		}
	})
}

// TestLoss creates a machine again that another client has deleted.
func TestLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.clouds()
		_, err := made(t.Context(), c)
		must(t, err)
		w.Lose("worker1-edge")
		if _, err := c.Await(t.Context(), cloud(), group(), names); nf.KindOf(err) != nf.Failed {
			t.Errorf("the error is %v, want that the machine does not exist", err)
		}
		_, err = made(t.Context(), c)
		must(t, err)
		wantServers(t, "the machine exists again", w, "master1-edge ACTIVE", "worker1-edge ACTIVE", "worker2-edge ACTIVE")
		if ports := w.Ports(); len(ports) != 6 {
			t.Errorf("the ports are %q, want that the new server has the ports of the old one", ports)
		}
	})
}

// TestDeaths lets the process die at each request, before and after the cloud executes
// it. Another process then finishes the work.
func TestDeaths(t *testing.T) {
	t.Parallel()
	create := func(ctx context.Context, c *openstack.Clouds) error { _, err := made(ctx, c); return err }
	remove := func(ctx context.Context, c *openstack.Clouds) error { return c.Delete(ctx, cloud(), group()) }
	for name, tc := range map[string]struct {
		prepared bool
		call     func(context.Context, *openstack.Clouds) error
		least    int // requests
		servers  []string
		ports    int
	}{
		"Create": {false, create, 30, []string{"master1-edge ACTIVE", "worker1-edge ACTIVE", "worker2-edge ACTIVE"}, 6},
		"Delete": {true, remove, 15, []string{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for death, ended := 1, false; !ended; death++ {
				for _, after := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						if tc.prepared {
							must(t, create(t.Context(), w.clouds()))
						}
						w.calls, w.death, w.after = 0, death, after
						first := tc.call(t.Context(), w.clouds())
						ended = w.calls < death
						if ended && death <= tc.least {
							t.Errorf("there were %d requests, want at least %d", death, tc.least)
						}
						if (first == nil) != ended {
							t.Errorf("the process died at request %d, and the call returned %v", death, first)
						}
						w.death = 0
						must(t, tc.call(t.Context(), w.clouds()))
						wantServers(t, fmt.Sprintf("after a death at request %d (executed: %t)", death, after), w, tc.servers...)
						if got := w.Ports(); len(got) != tc.ports {
							t.Errorf("after a death at request %d the ports are %q", death, got)
						}
					})
				}
			}
		})
	}
}

// TestTLS connects by TCP.
func TestTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simulator.Config) { c.Boot, c.Vanish = 0, 0 })
	server := httptest.NewTLSServer(w)
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	local := outbound.Hosts{}.WithLoopback()
	cases := map[string]struct {
		reason string
		hosts  outbound.Hosts
		edit   func(*nf.OpenStack)
		kind   nf.Kind // nf.Internal: no error
	}{
		"CA":       {"the region's CA verifies the cloud", local, func(o *nf.OpenStack) { o.CA = ca }, nf.Internal},
		"Unknown":  {"an unknown CA does not", local, func(*nf.OpenStack) {}, nf.Unreachable},
		"Insecure": {"unless the region says so", local, func(o *nf.OpenStack) { o.Insecure = true }, nf.Internal},
		"NoPEM":    {"a CA is PEM", local, func(o *nf.OpenStack) { o.CA = []byte("x") }, nf.Invalid},
		"Loopback": {"the address of this machine is not allowed by default", outbound.Hosts{}, func(o *nf.OpenStack) { o.CA = ca }, nf.Forbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := cloud()
			o.AuthURL = server.URL + "/identity/"
			tc.edit(&o)
			_, err := openstack.New(openstack.Config{Hosts: tc.hosts}).Machines(t.Context(), o, group())
			wantNoSecret(t, err)
			if (err == nil) != (tc.kind == nf.Internal) || nf.KindOf(err) != tc.kind {
				t.Errorf("%s: the error is %v (%s), want %s", tc.reason, err, nf.KindOf(err), tc.kind)
			}
		})
	}
}
