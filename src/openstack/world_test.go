package openstack_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/openstack"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/openstack"
)

const password = "pa55word-of-the-cloud"

// world is a simulated cloud, and the process that uses it.
type world struct {
	*simulator.Simulator

	mu    sync.Mutex
	calls int
	death int  // number of the request at which the process dies; 0: none
	after bool // the cloud executes that request
}

var errDead = errors.New("the process has died")

func newWorld(t *testing.T, edit ...func(*simulator.Config)) *world {
	t.Helper()
	cfg := simulator.Config{
		Username: "ann", UserDomain: "Default", Password: password, Project: "edge", ProjectDomain: "Default", Boot: 40 * time.Second, Vanish: 8 * time.Second, Page: 2,
	}
	for _, f := range edit {
		f(&cfg)
	}
	s, err := simulator.New(cfg)
	must(t, err)
	s.Stock([]simulator.Named{{ID: "11111111-1111-1111-1111-111111111111", Name: "debian-12"}, {ID: "image-2", Name: "twice"}, {ID: "image-3", Name: "twice"}},
		[]simulator.Named{{ID: "m1", Name: "medium"}}, []simulator.Named{{ID: "group-1", Name: "kubernetes"}}, []string{"ops"},
		[]simulator.Network{{ID: "net-1", Name: "management", Prefix: "10.0.0."}, {ID: "net-2", Name: "provider", Prefix: "192.0.2."}})
	return &world{Simulator: s}
}

// RoundTrip implements http.RoundTripper without a network, so that it runs in virtual
// time.
func (w *world) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	w.mu.Lock()
	w.calls++
	dead, at := w.death > 0 && w.calls >= w.death, w.death > 0 && w.calls == w.death
	w.mu.Unlock()
	if dead && (!at || !w.after) {
		return nil, errDead
	}
	defer func() {
		if recover() != nil { // http.ErrAbortHandler
			resp, err = nil, io.ErrUnexpectedEOF
		}
	}()
	recorder := httptest.NewRecorder()
	in := r.Clone(r.Context())
	in.Host = r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w.ServeHTTP(recorder, in)
	switch {
	case dead:
		return nil, errDead
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	}
	resp = recorder.Result()
	resp.Request = r
	return resp, nil
}

func (w *world) clouds() *openstack.Clouds {
	return openstack.New(openstack.Config{Connect: func(nf.OpenStack) (http.RoundTripper, error) { return w, nil }})
}

func cloud() nf.OpenStack {
	return nf.OpenStack{AuthURL: "https://cloud.example.com/identity/v3", Username: "ann", Password: nf.Secret(password), Project: "edge"}
}

func group(edit ...func(*nf.Machines)) nf.MachineGroup {
	g := nf.MachineGroup{Owner: "uid-1", Name: "edge", Spec: nf.Machines{
		Cloud: "cloud", Image: "debian-12", Flavor: "medium", Networks: []string{"management", "net-2"}, KeyPair: "ops", SecurityGroups: []string{"kubernetes"},
	}}
	for _, f := range edit {
		f(&g.Spec)
	}
	return g
}

var names = []string{"master1", "worker1", "worker2"}

// made creates the machines and waits for them.
func made(ctx context.Context, c *openstack.Clouds) ([]nf.Machine, error) {
	if err := c.Create(ctx, cloud(), group(), names); err != nil {
		return nil, err
	}
	return c.Await(ctx, cloud(), group(), names)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantServers(t *testing.T, reason string, w *world, want ...string) {
	t.Helper()
	if got := w.Servers(); !slices.Equal(got, want) {
		t.Errorf("%s: the servers are %q, want %q", reason, got, want)
	}
}

func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), password) {
		t.Errorf("an error has the password: %v", err)
	}
}
