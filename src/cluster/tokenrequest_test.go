package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// issuer is an in-process stand-in of an API server that issues tokens for one
// service account. It is strict: it fails the test at a request that a real one
// would not understand.
type issuer struct {
	t       *testing.T
	shelf   *shelf
	valid   map[string]bool // tokens that it accepts
	status  int             // of TokenRequests; 0: they succeed
	answer  string          // of TokenRequests instead of a token
	refused bool            // the tokens that it issues are not accepted
	issued  int
	spec    authentication.TokenRequestSpec // of the last TokenRequest
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.shelf.mu.Lock()
	defer i.shelf.mu.Unlock()
	if !i.valid[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, secret)
		return
	}
	switch r.URL.Path {
	case "/prefix/api/v1/namespaces/edge/serviceaccounts/vnf.manager/token":
		i.issue(w, r)
	case "/prefix/apis/authentication.k8s.io/v1/selfsubjectreviews", "/prefix/api/v1/nodes", "/prefix/readyz":
		_, _ = io.WriteString(w, `{}`)
	default:
		i.t.Errorf("unexpected %s %s", r.Method, r.URL)
	}
}

func (i *issuer) issue(w http.ResponseWriter, r *http.Request) {
	var asked authentication.TokenRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&asked); err != nil || asked.Kind != "TokenRequest" || asked.APIVersion != "authentication.k8s.io/v1" ||
		r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		i.t.Errorf("a malformed TokenRequest: %+v, %v", asked, err)
	}
	i.spec = asked.Spec
	if i.status != 0 {
		w.WriteHeader(i.status)
		_, _ = io.WriteString(w, secret)
		return
	}
	if i.answer != "" {
		_, _ = io.WriteString(w, i.answer)
		return
	}
	i.issued++
	name := fmt.Sprintf("token-%d", i.issued)
	i.valid[name] = !i.refused
	_, _ = fmt.Fprintf(w, `{"kind": "TokenRequest", "status": {"token": %q, "expirationTimestamp": %q}}`, name,
		time.Now().Add(i.shelf.ahead+time.Hour).Format(time.RFC3339))
}

// edge returns a stand-in, and an access whose own token lives for ten hours.
func edge(t *testing.T) (*issuer, nf.Access, PoolConfig) {
	t.Helper()
	i := &issuer{t: t, shelf: &shelf{}}
	given := token(fmt.Sprintf(`{"exp":%d}`, time.Now().Add(10*time.Hour).Unix()))
	i.valid = map[string]bool{given: true}
	server := httptest.NewTLSServer(i)
	t.Cleanup(server.Close)
	access := nf.Access{
		Server: server.URL + "/prefix/", Insecure: true, Token: nf.Secret(given),
		ServiceAccount: &nf.ServiceAccount{Namespace: "edge", Name: "vnf.manager", Audiences: []string{"api"}},
	}
	return i, access, PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Clock: i.shelf.now, Keep: i.shelf.keep}
}

func openedBy(t *testing.T, cfg PoolConfig, access nf.Access) *Cluster {
	t.Helper()
	c, err := New(cfg).Open("east", access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	return c
}

// TestTokenRequestFails holds what is told of a token that cannot be renewed. The
// region is used with the token that it has.
func TestTokenRequestFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*issuer)
		want   string
	}{
		"Forbidden":   {"the missing rule is named", func(i *issuer) { i.status = 403 }, `resources ["serviceaccounts/token"], resourceNames ["vnf.manager"], verbs ["create"]`},
		"NotFound":    {"so is the service account", func(i *issuer) { i.status = 404 }, "the region has no service account edge/vnf.manager"},
		"Invalid":     {"an audience that the API server does not know", func(i *issuer) { i.status = 422 }, "rejects the lifetime or the audiences"},
		"Unavailable": {"any other answer", func(i *issuer) { i.status = 500 }, "answers 500 Internal Server Error to the TokenRequest for edge/vnf.manager"},
		"HTML":        {"a server that is none", func(i *issuer) { i.answer = "<html>" + secret }, "has no token with an expiry"},
		"NoToken":     {"nothing was issued", func(i *issuer) { i.answer = `{"kind": "TokenRequest"}` }, "has no token with an expiry"},
		"NoExpiry":    {"a token whose end is unknown could not be renewed in time", func(i *issuer) { i.answer = `{"status": {"token": "` + secret + `"}}` }, "has no token with an expiry"},
		"Audience":    {"a token for another audience does not replace one that works", func(i *issuer) { i.refused = true }, "audiences must include one of the API server's"},
		"Endless":     {"an answer that is too large", func(i *issuer) { i.answer = `{"status": "` + strings.Repeat("x", 2*maxTokenAnswer) + `"}` }, "has no token with an expiry"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i, access, cfg := edge(t)
			tc.change(i)
			c := openedBy(t, cfg, access)
			if err := c.tryOnce(t.Context()); err != nil {
				t.Errorf("%s: the given token is valid: %v", tc.reason, err)
			}
			state := c.state(time.Hour)
			if state.Condition != nf.RegionExpiring || !strings.Contains(state.Message, tc.want) || strings.Contains(state.Message, secret) ||
				state.Credential.Failing.IsZero() || state.Credential.Expires.IsZero() || len(i.shelf.tokens()) != 0 {
				t.Errorf("%s: %+v, want %q without the server's text", tc.reason, state, tc.want)
			}
			diff(t, "the audiences are those of the access, the lifetime is an hour", authentication.TokenRequestSpec{
				Audiences: []string{"api"}, ExpirationSeconds: new(int64(3600)),
			}, i.spec)
		})
	}
}

// TestTokenRequestLife passes the life of a token that several replicas share.
func TestTokenRequestLife(t *testing.T) {
	i, access, cfg := edge(t)
	c := openedBy(t, cfg, access)
	steps := []struct {
		reason string
		after  time.Duration
		change func()
		issued int // so far
		kept   int
		tries  int    // to store a token
		want   string // reason of the failure; empty: none
	}{
		{"the given token is renewed at once", 0, func() {}, 1, 1, 1, ""},
		{"not before two thirds of the new one's life", 39 * time.Minute, func() {}, 1, 1, 1, ""},
		{"then it is, within a tenth of it", 7 * time.Minute, func() {}, 2, 2, 2, ""},
		{"a token that cannot be stored is used", 50 * time.Minute, func() { i.shelf.fail(errors.New("the store is away")) }, 3, 2, 3, ""},
		{"while the store is away, storing is tried again", tokenRetry, func() {}, 3, 2, 4, ""},
		{"but not with each request", time.Second, func() {}, 3, 2, 4, ""},
		{"it is stored later, without another one", tokenRetry, func() { i.shelf.fail(nil) }, 3, 3, 5, ""},
		{"another replica's token is used", 50 * time.Minute, func() {
			i.valid["shared"] = true
			c.transport.offer(nf.Access{Renewed: &nf.RenewedToken{Token: nf.Secret("shared"), Issued: i.shelf.now(), Expires: i.shelf.now().Add(time.Hour)}})
		}, 3, 3, 5, ""},
		{"an older one is not", 0, func() {
			c.transport.offer(nf.Access{Renewed: &nf.RenewedToken{Token: nf.Secret("old"), Issued: i.shelf.now(), Expires: i.shelf.now().Add(time.Minute)}})
		}, 3, 3, 5, ""},
		{"a token that is rejected is reported", time.Minute, func() { i.valid["shared"] = false }, 3, 3, 5, "unauthorized"},
		{"the given one is used, and renewed", 0, func() {}, 4, 4, 6, ""},
		{"nothing is valid any longer", 10 * time.Hour, func() { i.valid = map[string]bool{} }, 4, 4, 6, "unauthorized"},
	}
	for _, step := range steps {
		i.shelf.pass(step.after)
		step.change()
		err := c.tryOnce(t.Context())
		if nf.ReasonOf(err) != step.want || (err == nil) != (step.want == "") || i.issued != step.issued || len(i.shelf.tokens()) != step.kept || i.shelf.tries != step.tries {
			t.Fatalf("%s: %v; %d tokens after %d TokenRequests and %d attempts to store one; want reason %q, %d, %d and %d",
				step.reason, err, len(i.shelf.tokens()), i.issued, i.shelf.tries, step.want, step.kept, step.issued, step.tries)
		}
	}
}

// TestTokenRequestRestart opens a region whose stored token has expired.
func TestTokenRequestRestart(t *testing.T) {
	i, access, cfg := edge(t)
	access.Renewed = &nf.RenewedToken{Token: nf.Secret("ended"), Issued: i.shelf.now().Add(-2 * time.Hour), Expires: i.shelf.now().Add(-time.Hour)}
	if err := openedBy(t, cfg, access).tryOnce(t.Context()); err != nil || i.issued != 1 {
		t.Errorf("the given token lives longer, and is renewed: %v after %d tokens", err, i.issued)
	}
	cfg.Keep = nil
	if err := openedBy(t, cfg, access).tryOnce(t.Context()); err != nil || i.issued != 1 {
		t.Errorf("a pool that cannot store tokens requests none: %v after %d tokens", err, i.issued)
	}
}
