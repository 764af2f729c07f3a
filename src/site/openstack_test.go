package site_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/openstack"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/openstack"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

// transport calls a handler without a network, so that it runs in virtual time.
type transport struct{ http.Handler }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	in, out := r.Clone(r.Context()), httptest.NewRecorder()
	in.Host = r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	t.ServeHTTP(out, in)
	resp := out.Result()
	resp.Request = r
	return resp, nil
}

// TestOpenStack builds, scales and removes a site with the driver of OpenStack, at a
// simulated cloud.
func TestOpenStack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sim, err := simulator.New(simulator.Config{
			Username: "ann", UserDomain: "Default", Password: cloudPassword, Project: "edge", ProjectDomain: "Default", Boot: time.Minute, Vanish: 10 * time.Second, Life: 30 * time.Second,
		})
		must(t, err)
		sim.Stock([]simulator.Named{{ID: "i1", Name: "debian"}}, []simulator.Named{{ID: "f1", Name: "medium"}}, nil, []string{"ops"}, []simulator.Network{{ID: "n1", Name: "management", Prefix: "10.0.0."}})
		w := newWorld()
		w.regions["cloud"] = nf.Region{ID: "cloud", Type: nf.OpenStackRegion, VIM: &nf.VIM{OpenStack: &nf.OpenStack{
			AuthURL: "https://cloud.example.com/identity", Username: "ann", Password: nf.Secret(cloudPassword), Project: "edge",
		}}}
		s, _ := w.start(t, func(c *config) {
			c.Holds, c.Clouds = w, openstack.New(openstack.Config{Connect: func(nf.OpenStack) (http.RoundTripper, error) { return transport{sim}, nil }})
		})
		op, err := s.Create(t.Context(), machines())
		succeed(t, s, op, err)
		wantServers := func(reason string, want ...string) {
			t.Helper()
			if got := sim.Servers(); !slices.Equal(got, want) || len(sim.Ports()) != len(want) {
				t.Errorf("%s: the servers are %q with the ports %q, want %q", reason, got, sim.Ports(), want)
			}
		}
		wantServers("the site is built", "master1-edge ACTIVE", "worker1-edge ACTIVE", "worker2-edge ACTIVE")
		jobs := w.started()
		for _, h := range jobs[len(jobs)-1].Site.Hosts {
			if h.Address[:7] != "10.0.0." || h.Key == "" || jobs[len(jobs)-1].Action != site.Build {
				t.Errorf("the run has host %+v, want an address and a pinned key", h)
			}
		}
		op, err = s.Change(t.Context(), "edge", nf.SiteChangeRequest{Workers: new(1)})
		succeed(t, s, op, err)
		wantServers("a worker is removed", "master1-edge ACTIVE", "worker1-edge ACTIVE")
		op, err = s.Remove(t.Context(), "edge", nf.SiteRemoveRequest{})
		succeed(t, s, op, err)
		wantServers("the site is removed")
	})
}
