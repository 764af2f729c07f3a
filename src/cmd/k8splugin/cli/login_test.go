package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// provider is an OpenID Connect provider with the device flow (RFC 8628). It refuses
// what a real one refuses: another client, another grant, and a code that it has not
// given.
type provider struct {
	*httptest.Server

	noDevice bool
	noToken  bool   // its responses contain no id token
	denied   bool   // the user denies access
	revoked  bool   // refresh tokens are not valid any more
	lifetime int    // of tokens, in seconds
	scope    string // that was requested
	asked    atomic.Int32
	renewed  atomic.Int32
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{lifetime: 3600}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code string) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": code})
	}
	if r.Method == http.MethodPost && r.PostFormValue("client_id") != "k8splugin" {
		refuse("invalid_client")
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		doc := map[string]string{"issuer": p.URL, "token_endpoint": p.URL + "/token", "authorization_endpoint": p.URL + "/auth", "jwks_uri": p.URL + "/keys"}
		if !p.noDevice {
			doc["device_authorization_endpoint"] = p.URL + "/device"
		}
		_ = json.NewEncoder(w).Encode(doc)
	case "/device":
		p.scope = r.PostFormValue("scope")
		_ = json.NewEncoder(w).Encode(map[string]any{"device_code": "dc", "user_code": "WDJB-MJHT", "verification_uri": p.URL + "/enter", "expires_in": 60, "interval": 1})
	case "/token":
		p.token(w, r, refuse)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (p *provider) token(w http.ResponseWriter, r *http.Request, refuse func(string)) {
	switch grant := r.PostFormValue("grant_type"); {
	case grant == "urn:ietf:params:oauth:grant-type:device_code" && r.PostFormValue("device_code") == "dc":
		if p.denied {
			refuse("access_denied")
			return
		}
		if p.asked.Add(1) == 1 {
			refuse("authorization_pending")
			return
		}
	case grant == "refresh_token" && r.PostFormValue("refresh_token") == "again" && !p.revoked:
		p.renewed.Add(1)
	default:
		refuse("invalid_grant")
		return
	}
	doc := map[string]any{"access_token": "opaque", "token_type": "Bearer", "expires_in": p.lifetime, "refresh_token": "again"}
	if !p.noToken {
		doc["id_token"] = fmt.Sprintf("jwt-%d", p.renewed.Load())
	}
	_ = json.NewEncoder(w).Encode(doc)
}

// TestExpiry reads the end of a token.
func TestExpiry(t *testing.T) {
	t.Parallel()
	access := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	claims := func(document string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(document)) + ".c2ln"
	}
	for reason, tc := range map[string]struct {
		id   string
		want time.Time
	}{
		"an id token may end before the access token": {claims(`{"exp": 1763628600}`), time.Unix(1763628600, 0)},
		"another token does not tell its end":         {"opaque", access},
		"a token without an end has that of access":   {claims(`{"sub": "ann"}`), access},
	} {
		if got := expiry(tc.id, access); !got.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", reason, got, tc.want)
		}
	}
}

// TestLogin logs in and uses the token, whose clock is in 2026: the provider's
// lifetimes begin now, in the time of the test's machine.
func TestLogin(t *testing.T) {
	p := newProvider(t)
	server, asked := lister(t)
	home := t.TempDir()
	env := console{env: map[string]string{"HOME": home}}
	do := func(code int, want string, args ...string) {
		t.Helper()
		r := env.run(t.Context(), "", args...)
		if r.code != code || !strings.Contains(r.stdout+r.stderr, want) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", args, r.code, code, want, r.stdout, r.stderr)
		}
	}
	tokens := filepath.Join(home, ".config", "k8splugin", "tokens", "lab.json")

	do(exitUsage, "no provider", "login")
	do(exitOK, "", "context", "set", "lab", "--server", server, "--oidc-issuer", p.URL, "--oidc-client-id", "k8splugin", "--oidc-scope", "groups")
	do(exitNotAllowed, "k8splugin login --context lab", "region", "list")
	do(exitOK, "enter the code WDJB-MJHT", "login")
	if p.scope != "openid offline_access groups" {
		t.Errorf("the requested scope is %q", p.scope)
	}
	if about, err := os.Stat(tokens); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the tokens are in %v, %v", about, err)
	}
	do(exitOK, "", "region", "list")
	if got := <-asked; got != "Bearer jwt-0" || p.renewed.Load() != 0 {
		t.Errorf("the request has %q, after %d renewals", got, p.renewed.Load())
	}

	expire(t, tokens)
	do(exitOK, "", "region", "list")
	if got := <-asked; got != "Bearer jwt-1" {
		t.Errorf("the request has %q: the token was not renewed", got)
	}
	expire(t, tokens)
	p.revoked = true
	do(exitNotAllowed, "k8splugin login --context lab", "region", "list")

	p.denied = true
	do(exitNotAllowed, "access_denied", "login", "--context", "lab")
	p.denied, p.noToken = false, true
	do(exitNotAllowed, "contains no id_token", "login")
	p.noDevice = true
	do(exitNotAllowed, "does not offer the device flow", "login")
	p.Close()
	do(exitNoServer, "cannot read the configuration", "login")

	do(exitOK, "", "context", "set", "lab", "--server", server, "--oidc-issuer", "https://elsewhere.example.com", "--oidc-client-id", "k8splugin")
	do(exitNotAllowed, "the stored token is from "+p.URL, "region", "list")
	do(exitOK, "", "context", "delete", "lab")
	if _, err := os.Stat(tokens); !os.IsNotExist(err) {
		t.Errorf("the tokens of a context that is deleted: %v", err)
	}
	if len(asked) > 0 {
		t.Errorf("a request without a valid token was sent: %q", <-asked)
	}
}

// expire ends the lifetime of a stored token.
func expire(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	doc["expires_at"] = "2026-11-20T09:30:10Z" // ten seconds after the console's time
	if err := os.WriteFile(path, jsonOf(doc), 0o600); err != nil {
		t.Fatal(err)
	}
}
