package cluster

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// provider is an in-process stand-in of an OpenID Connect provider and of the API
// server that trusts it. Its tokens live for an hour of its own clock.
type provider struct {
	mu     sync.Mutex
	now    time.Time
	grants int
	answer string // of the token endpoint instead of a token
	valid  string // token that the API server accepts
	form   map[string][]string
}

func (p *provider) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// set changes the stand-in.
func (p *provider) set(change func(*provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// usagePath is a path of an aggregated API, whose server does not accept the API server.
const usagePath = "/apis/metrics.k8s.io/v1beta1/pods"

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.URL.Path != "/token" {
		if r.Header.Get("Authorization") != "Bearer "+p.valid || r.URL.Path == usagePath {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return
	}
	p.grants++
	_ = r.ParseForm()
	p.form = r.PostForm
	if p.answer != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, p.answer)
		return
	}
	p.valid = token(fmt.Sprintf(`{"exp":%d,"n":%d}`, p.now.Add(time.Hour).Unix(), p.grants))
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token": "other", "token_type": "Bearer", "expires_in": 60, "id_token": %q}`, p.valid)
}

// TestPasswordGrant fetches a token from the stand-in, keeps it, and renews it.
func TestPasswordGrant(t *testing.T) {
	p := &provider{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	server := httptest.NewTLSServer(p)
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	access := nf.Access{Server: server.URL, CA: ca, OIDC: &nf.OIDC{
		TokenURL: server.URL + "/token", ClientID: "k8s", ClientSecret: nf.Secret("c"), Username: "u", Password: nf.Secret("p"), CA: ca,
	}}
	c, err := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Clock: p.clock}).Open("east", access)
	if err != nil {
		t.Fatal(err)
	}
	defer c.transport.CloseIdleConnections()
	steps := []struct {
		reason string
		after  time.Duration
		change func(*provider)
		grants int    // so far
		want   string // reason of the failure; empty: none
	}{
		{"the first request fetches a token", 0, func(*provider) {}, 1, ""},
		{"the next uses it", 39 * time.Minute, func(*provider) {}, 1, ""},
		{"after two thirds of its life it is renewed", time.Minute, func(*provider) {}, 2, ""},
		{"a token is used for as long as it is valid", 50 * time.Minute, func(p *provider) { p.answer = `{"error": "invalid_grant"}` }, 3, ""},
		{"the provider is left alone for a moment", time.Second, func(*provider) {}, 3, ""},
		{"then nothing is left", 10 * time.Minute, func(*provider) {}, 4, "unauthorized"},
		{"a wrong password is not sent again at once", time.Second, func(*provider) {}, 4, "unauthorized"},
		{"a provider that is back is asked", time.Minute, func(p *provider) { p.answer = "" }, 5, ""},
		{"a token that is no longer accepted is reported", time.Minute, func(p *provider) { p.valid = "another" }, 5, "unauthorized"},
		{"and the next request fetches another", 0, func(*provider) {}, 6, ""},
	}
	for _, step := range steps {
		p.set(func(p *provider) { p.now = p.now.Add(step.after); step.change(p) })
		err := c.tryOnce(t.Context())
		if nf.ReasonOf(err) != step.want || (err == nil) != (step.want == "") || p.grants != step.grants {
			t.Errorf("%s: %v after %d grants, want reason %q after %d", step.reason, err, p.grants, step.want, step.grants)
		}
	}
	want := map[string][]string{
		"grant_type": {"password"}, "username": {"u"}, "password": {"p"}, "client_id": {"k8s"}, "client_secret": {"c"}, "scope": {"openid"},
	}
	diff(t, "what the provider is asked", want, p.form)
	diff(t, "the credential is known without an expiry", nf.Credential{Kind: "oidc"}, credentialOf(access))
}

// TestPasswordGrantOfAggregatedAPI has the server of an aggregated API respond with 401: the
// token of the region remains.
func TestPasswordGrantOfAggregatedAPI(t *testing.T) {
	p := &provider{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	server := httptest.NewTLSServer(p)
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	access := nf.Access{Server: server.URL, CA: ca, OIDC: &nf.OIDC{TokenURL: server.URL + "/token", ClientID: "k8s", Username: "u", Password: nf.Secret("p"), CA: ca}}
	rejections := 0
	pool := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), Clock: p.clock, Rejected: func(string, nf.Access) { rejections++ }})
	c, err := pool.Open("east", access)
	if err != nil {
		t.Fatal(err)
	}
	defer c.transport.CloseIdleConnections()
	for range 3 {
		if err := c.tryOnce(t.Context()); err != nil {
			t.Error(err)
		}
		p.set(func(p *provider) { p.now = p.now.Add(time.Minute) })
		if err := c.client.verb(http.MethodGet).AbsPath(usagePath).MaxRetries(0).Do(t.Context()).Error(); err == nil {
			t.Error("the aggregated API responds")
		}
	}
	if p.grants != 1 || rejections > 0 {
		t.Errorf("the token was fetched %d times, and rejected %d times", p.grants, rejections)
	}
}

// TestPasswordGrantFails holds what is told of a provider that gives no token.
func TestPasswordGrantFails(t *testing.T) {
	html := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>"+secret) }))
	defer html.Close()
	refusing := httptest.NewTLSServer(&provider{answer: secret})
	defer refusing.Close()
	bare := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token": "`+secret+`"}`)
	}))
	defer bare.Close()
	moved := httptest.NewTLSServer(http.RedirectHandler(refusing.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	cases := map[string]struct {
		reason  string
		server  *httptest.Server
		trusted bool
		want    string
	}{
		"Refused":   {"a wrong password", refusing, true, "unauthorized"},
		"NoIDToken": {"an access token is not what API servers accept", bare, true, "unauthorized"},
		"HTML":      {"a server that is no provider", html, true, "tcp"},
		"Redirect":  {"a password is not sent elsewhere", moved, true, "unavailable"},
		"Unknown":   {"a certificate that is not trusted", refusing, false, "tls"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &nf.OIDC{TokenURL: tc.server.URL, ClientID: "k8s", Username: "u", Password: nf.Secret("p")}
			if tc.trusted {
				o.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tc.server.Certificate().Raw})
			}
			_, err := local(t).Probe(t.Context(), nf.Access{Server: tc.server.URL, Insecure: true, OIDC: o})
			wantKind(t, err, nf.Unreachable)
			if nf.ReasonOf(err) != tc.want || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the reason is %q, want %q, without the server's text: %v", tc.reason, nf.ReasonOf(err), tc.want, err)
			}
			if !strings.Contains(err.Error(), "it has no token: ") {
				t.Errorf("%s: the error blames the region, not the provider: %v", tc.reason, err)
			}
		})
	}
	metadata := nf.Access{Server: "https://10.0.0.1", OIDC: &nf.OIDC{TokenURL: "https://169.254.169.254/token", ClientID: "k8s", Username: "u", Password: nf.Secret("p")}}
	if v := nf.ViolationsOf(New(PoolConfig{}).Check(metadata)); len(v) != 1 || v[0].Field != "access.oidc.token_url" {
		t.Errorf("the provider's address is restricted as a region's: %v", v)
	}
}
