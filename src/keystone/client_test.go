package keystone_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/keystone"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulated "github.com/multicloud-k8s/k8splugin/src/simulator/keystone"
)

// world is a client of a simulated Keystone, with a clock that a test moves.
type world struct {
	*keystone.Client

	t         *testing.T
	simulator *simulated.Simulator
	passed    atomic.Int64 // time.Duration since the start
	log       bytes.Buffer
	password  atomic.Value // of the service user
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	start := time.Now()
	clock := func() time.Time { return start.Add(time.Duration(w.passed.Load())) }
	w.password.Store("s3cret-service")
	w.simulator = simulated.New(simulated.Config{Clock: clock, Users: []simulated.User{
		{Name: "k8splugin", Password: "s3cret-service", Roles: map[string][]string{"service": {"admin"}}},
		{Name: "ann", Password: "s3cret-ann", Roles: map[string][]string{"blue": {"member", "reader"}, "green@Partners": {"admin"}, "my project": {"member"}, strings.Repeat("a1", 16): {"member"}}},
		{Name: "bob", Domain: "Partners", Password: "s3cret-bob", Roles: map[string][]string{"blue": {"reader"}}},
	}})
	server := httptest.NewServer(w.simulator)
	t.Cleanup(server.Close)
	transport := &http.Transport{DisableKeepAlives: true}
	var err error
	w.Client, err = keystone.New(keystone.Config{
		URL: server.URL + "/v3", Transport: transport, Clock: clock, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Credentials: func(context.Context) (string, nf.Secret) { return "k8splugin", nf.Secret(w.password.Load().(string)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) pass(d time.Duration) { w.passed.Add(int64(d)) }

// want fails the test unless the validation of a token has a kind; Internal: none, it is
// valid.
func (w *world) want(reason, token string, kind nf.Kind) nf.Identity {
	w.t.Helper()
	id, found := w.Known(token)
	if found && kind == nf.Internal {
		return id
	}
	id, err := w.Identity(w.t.Context(), token)
	if nf.KindOf(err) != kind || (err == nil) != (kind == nf.Internal) {
		w.t.Fatalf("%s: %v, want %v", reason, err, kind)
	}
	if err != nil && strings.Contains(err.Error(), token) && token != "" {
		w.t.Errorf("%s: the error has the token: %v", reason, err)
	}
	return id
}

// asked returns the number of requests since the last call, by their methods.
func (w *world) asked() map[string]int {
	out := map[string]int{}
	for _, e := range w.simulator.Journal() {
		out[e.Method]++
	}
	return out
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, user, project string
		want                  nf.Identity
	}{
		"Member":   {"the user, the project and the roles", "ann", "blue", nf.Identity{Kind: "keystone", Name: "ann", Project: "blue", Groups: []string{"keystone:member", "keystone:reader"}}},
		"Unscoped": {"a token without a project gives no role", "ann", "", nf.Identity{Kind: "keystone", Name: "ann"}},
		"Domain":   {"a project of another domain has its id: its name may be taken", "ann", "green@Partners", nf.Identity{Kind: "keystone", Name: "ann", Project: simulated.ProjectID("green@Partners"), Groups: []string{"keystone:admin"}}},
		"User":     {"and so has a user of one", "bob", "blue", nf.Identity{Kind: "keystone", Name: simulated.UserID("bob", "Partners"), Project: "blue", Groups: []string{"keystone:reader"}}},
		"Blank":    {"a name that no project can have here", "ann", "my project", nf.Identity{Kind: "keystone", Name: "ann", Project: simulated.ProjectID("my project"), Groups: []string{"keystone:member"}}},
		"Like":     {"a name that looks like the id of another project", "ann", strings.Repeat("a1", 16), nf.Identity{Kind: "keystone", Name: "ann", Project: simulated.ProjectID(strings.Repeat("a1", 16)), Groups: []string{"keystone:member"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if diff := cmp.Diff(tc.want, w.want(tc.reason, w.simulator.Issue(tc.user, tc.project), nf.Internal)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRemembers has a token that is used for a minute without asking, and no longer.
func TestRemembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.simulator.Issue("ann", "blue")
	w.want("the first time", token, nf.Internal)
	if diff := cmp.Diff(map[string]int{"POST": 1, "GET": 1}, w.asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	w.pass(59 * time.Second)
	w.want("within the minute", token, nf.Internal)
	w.simulator.Revoke(token)
	w.want("a revocation within the minute", token, nf.Internal)
	if got := w.asked(); len(got) > 0 {
		t.Errorf("requests %v within the minute", got)
	}
	w.pass(time.Second)
	w.want("a revoked token", token, nf.Unauthenticated)
	if diff := cmp.Diff(map[string]int{"GET": 1}, w.asked()); diff != "" {
		t.Errorf("requests with the token of the service user (-want +got):\n%s", diff)
	}
	late := w.simulator.Issue("ann", "blue")
	w.pass(time.Hour - 30*time.Second)
	w.want("30 seconds before it expires", late, nf.Internal)
	w.pass(31 * time.Second)
	if _, found := w.Known(late); found {
		t.Error("a token is known after it has expired")
	}
	w.want("after it has expired", late, nf.Unauthenticated)
	if got := w.asked(); got["POST"] == 0 {
		t.Errorf("requests %v, want that the service user's token is renewed", got)
	}
}

func TestRejects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for reason, token := range map[string]string{"no token": "", "an unknown one": "unknown", "a long one": strings.Repeat("a", 9000), "a line break": "a\r\nX-Auth-Token: b", "a text": "é"} {
		w.want(reason, token, nf.Unauthenticated)
	}
	if got := w.asked(); got["GET"] != 1 {
		t.Errorf("requests %v, want one, for the token that may be one", got)
	}
}

// TestFails has faults of Keystone. Each ends with the next request after two seconds.
func TestFails(t *testing.T) {
	t.Parallel()
	faults := map[string]simulated.Fault{
		"Unavailable": {Status: http.StatusServiceUnavailable, Body: "s3cret internals"},
		"Text":        {Method: http.MethodGet, Status: http.StatusOK, Body: "<html>s3cret"},
		"Empty":       {Method: http.MethodGet, Status: http.StatusOK, Body: "{}"},
		"Redirect":    {Method: http.MethodGet, Status: http.StatusFound},
		"Forbidden":   {Method: http.MethodGet, Status: http.StatusForbidden},
		"Lost":        {Lost: true},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			token := w.simulator.Issue("ann", "blue")
			w.simulator.Fail(fault, -1)
			w.want(name, token, nf.Unreachable)
			w.simulator.Recover()
			before := w.asked()
			_, err := w.Identity(t.Context(), token)
			if nf.ReasonOf(err) != nf.ReasonKeystone || nf.RetryAfterOf(err) != 2*time.Second || len(w.asked()) > 0 {
				t.Errorf("just after a failure: %v, after %v", err, before)
			}
			w.pass(2 * time.Second)
			w.want("it has recovered", token, nf.Internal)
			for _, secret := range []string{"s3cret", token} {
				if strings.Contains(w.log.String(), secret) {
					t.Errorf("the log has a secret: %s", w.log.String())
				}
			}
			if w.log.Len() == 0 {
				t.Error("the log lacks the failure")
			}
		})
	}
}

// TestServiceUser has a service user whose token is lost, and one with a wrong password.
func TestServiceUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("a token", w.simulator.Issue("ann", "blue"), nf.Internal)
	w.simulator.RevokeAll()
	w.want("its own token was revoked", w.simulator.Issue("ann", "blue"), nf.Internal)
	w.simulator.RevokeAll()
	w.password.Store("wrong")
	token := w.simulator.Issue("ann", "blue")
	w.want("its password is wrong", token, nf.Unreachable)
	w.password.Store("s3cret-service")
	w.pass(2 * time.Second)
	w.want("its password is right again", token, nf.Internal)
}

// TestLeaves has a client that leaves while Keystone is asked: that is no failure of
// Keystone.
func TestLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.simulator.Issue("ann", "blue")
	ctx, leave := context.WithCancelCause(t.Context())
	leave(errors.New("the client has left"))
	if _, err := w.Identity(ctx, token); err != nil && nf.KindOf(err) != nf.Cancelled {
		t.Errorf("the client has left: %v", err)
	}
	w.want("another client", token, nf.Internal)
}

func TestNew(t *testing.T) {
	t.Parallel()
	credentials := func(context.Context) (string, nf.Secret) { return "", nil }
	for reason, cfg := range map[string]keystone.Config{
		"no URL":         {Credentials: credentials, Transport: http.DefaultTransport},
		"no host":        {URL: "https:///v3", Credentials: credentials, Transport: http.DefaultTransport},
		"a user":         {URL: "https://u:p@k/v3", Credentials: credentials, Transport: http.DefaultTransport},
		"no credentials": {URL: "https://k/v3", Transport: http.DefaultTransport},
		"no transport":   {URL: "https://k/v3", Credentials: credentials},
	} {
		if _, err := keystone.New(cfg); err == nil {
			t.Errorf("%s is accepted", reason)
		}
	}
}
