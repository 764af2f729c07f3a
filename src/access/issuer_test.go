package access_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// provider is an OpenID Connect provider.
type provider struct {
	*httptest.Server

	keys  map[string]*ecdsa.PrivateKey // that it publishes, by id
	down  bool
	asked atomic.Int64
	mu    sync.Mutex
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{keys: map[string]*ecdsa.PrivateKey{}}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			http.Error(w, "<html>s3cret internals</html>", http.StatusBadGateway)
			return
		}
		var answer any = map[string]any{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL, "token_endpoint": p.URL,
			"id_token_signing_alg_values_supported": []string{"none", "HS256", "ES256"},
		}
		if r.URL.Path == "/keys" {
			set := []any{map[string]any{"kty": "unheard-of", "kid": "x"}} // some providers also publish unknown types of keys
			for id, key := range p.keys {
				point, _ := key.PublicKey.Bytes()
				set = append(set, map[string]any{
					"kty": "EC", "crv": "P-256", "use": "sig", "kid": id,
					"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:]),
				})
			}
			answer = map[string]any{"keys": set}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(p.Close)
	p.rotate(t, "first")
	return p
}

// rotate replaces the provider's keys with a new one.
func (p *provider) rotate(t *testing.T, id string) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = map[string]*ecdsa.PrivateKey{id: key}
	return key
}

func (p *provider) stop(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

func (p *provider) key(id string) *ecdsa.PrivateKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[id]
}

// claims returns the claims of a valid token, with the given changes.
func (p *provider) claims(c *clock, change map[string]any) jwt.MapClaims {
	out := jwt.MapClaims{
		"iss": p.URL, "aud": []string{"other", "k8splugin"}, "sub": "u-1", "preferred_username": "ann",
		"groups": []string{"ops", "dev"}, "iat": c.now.Unix(), "exp": c.now.Add(time.Hour).Unix(),
	}
	for name, value := range change {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = value
		}
	}
	return out
}

func sign(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = "first"
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// trusting returns rules that trust a provider, with more settings for it.
func trusting(t *testing.T, c *clock, p *provider, more string) *access.Rules {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	return rulesOf(t, c, fmt.Sprintf("oidc: {issuer: '%s', audience: k8splugin, ca_file: ca.pem%s}\n", p.URL, more), map[string]string{"ca.pem": string(ca)})
}

func TestIssuer(t *testing.T) {
	t.Parallel()
	c, p := newClock(), newProvider(t)
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const refused = "its token was not issued for this service by the issuer, or it has expired"
	good := func(change map[string]any) string {
		return sign(t, jwt.SigningMethodES256, p.key("first"), p.claims(c, change))
	}
	named := ", username_claim: preferred_username, groups_prefix: 'sso:'"
	cases := map[string]struct {
		reason string
		more   string
		token  string
		want   nf.Identity
		text   string
	}{
		"Good":       {"by default, sub is the name", "", good(nil), nf.Identity{Kind: "oidc", Name: "u-1", Groups: []string{"dev", "ops"}}, ""},
		"Claims":     {"another claim can be the name, and a prefix separates the groups from local ones", named, good(nil), nf.Identity{Kind: "oidc", Name: "ann", Groups: []string{"sso:dev", "sso:ops"}}, ""},
		"OneGroup":   {"the groups may be a string with one group", "", good(map[string]any{"groups": "ops"}), nf.Identity{Kind: "oidc", Name: "u-1", Groups: []string{"ops"}}, ""},
		"NoGroups":   {"a token may be without groups", "", good(map[string]any{"groups": nil}), nf.Identity{Kind: "oidc", Name: "u-1"}, ""},
		"OddGroups":  {"groups that are not a list of names are ignored", "", good(map[string]any{"groups": []any{1, "ops"}}), nf.Identity{Kind: "oidc", Name: "u-1"}, ""},
		"OtherClaim": {"another claim can contain the groups", ", groups_claim: roles", good(map[string]any{"roles": []string{"x\ny", "z"}}), nf.Identity{Kind: "oidc", Name: "u-1", Groups: []string{"z"}}, ""},
		"Email":      {"a verified email address can be the name", ", username_claim: email", good(map[string]any{"email": "ann@example.org", "email_verified": true}), nf.Identity{Kind: "oidc", Name: "ann@example.org", Groups: []string{"dev", "ops"}}, ""},
		"Unverified": {"an unverified email address is rejected: any user can claim it", ", username_claim: email", good(map[string]any{"email": "ann@example.org", "email_verified": false}), nf.Identity{}, "the email address in its token is not verified"},
		"NoName":     {"a token without a name identifies no user", ", username_claim: nickname", good(nil), nf.Identity{}, `its token has no string in the claim "nickname", which contains the user's name`},
		"OddName":    {"a name with control characters, which could forge log lines, is rejected", "", good(map[string]any{"sub": "a\nb"}), nf.Identity{}, "the name in its token contains control characters"},
		"Expired":    {"an expired token is rejected", "", good(map[string]any{"exp": c.now.Add(-time.Second).Unix()}), nf.Identity{}, refused},
		"NotYet":     {"a token that is not valid yet is rejected", "", good(map[string]any{"nbf": c.now.Add(time.Hour).Unix()}), nf.Identity{}, refused},
		"NoExpiry":   {"a token without an expiry is rejected", "", good(map[string]any{"exp": nil}), nf.Identity{}, refused},
		"Audience":   {"a token for another audience is rejected", "", good(map[string]any{"aud": "other"}), nf.Identity{}, refused},
		"OtherOne":   {"a token of another issuer is rejected", "", good(map[string]any{"iss": "https://elsewhere.example.org"}), nf.Identity{}, refused},
		"Stranger":   {"a token that another key signed is rejected", "", sign(t, jwt.SigningMethodES256, stranger, p.claims(c, nil)), nf.Identity{}, refused},
		"None":       {"a token without a signature is rejected", "", sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, p.claims(c, nil)), nf.Identity{}, refused},
		"Symmetric":  {"a token that is signed with a public value is rejected", "", sign(t, jwt.SigningMethodHS256, []byte("k8splugin"), p.claims(c, nil)), nf.Identity{}, refused},
		"Garbage":    {"a text that is not a token is rejected", "", "x.y.z", nf.Identity{}, refused},
		"Cut":        {"a truncated token is rejected", "", good(nil)[:100], nf.Identity{}, refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := access.NewAuthenticator(trusting(t, c, p, tc.more)).Authenticate(request(t, "Bearer "+tc.token))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("%s: %v (-want +got)\n%s", tc.reason, err, diff)
			}
			if tc.text == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if want := "cannot authenticate the request: " + tc.text; nf.KindOf(err) != nf.Unauthenticated || err.Error() != want {
				t.Errorf("%s: %v, want %s", tc.reason, err, want)
			}
		})
	}
}

// TestIssuerComesAndGoes checks the cache of keys while the provider rotates its
// keys, and while it is unreachable.
func TestIssuerComesAndGoes(t *testing.T) {
	t.Parallel()
	c, p := newClock(), newProvider(t)
	a := access.NewAuthenticator(trusting(t, c, p, ""))
	first := p.key("first")
	try := func(key *ecdsa.PrivateKey) error {
		_, err := a.Authenticate(request(t, "Bearer "+sign(t, jwt.SigningMethodES256, key, p.claims(c, nil))))
		return err
	}
	expect := func(reason string, err error, kind nf.Kind, asked int64) {
		t.Helper()
		if (kind == nf.Internal) != (err == nil) || err != nil && nf.KindOf(err) != kind {
			t.Fatalf("%s: %v", reason, err)
		}
		if n := p.asked.Swap(0); n != asked {
			t.Fatalf("%s: the provider was asked %d times, want %d", reason, n, asked)
		}
	}
	p.stop(true)
	err := try(first)
	expect("while the provider is unreachable, tokens are neither accepted nor rejected", err, nf.Unreachable, 1)
	if nf.RetryAfterOf(err) == 0 || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "other ways to authenticate work") {
		t.Errorf("the error is %v, to be retried after %s", err, nf.RetryAfterOf(err))
	}
	expect("the provider is not asked again at once", try(first), nf.Unreachable, 0)
	p.stop(false)
	c.pass(10 * time.Second)
	expect("the provider is asked again soon", try(first), nf.Internal, 2)
	expect("the keys of the provider are cached", try(first), nf.Internal, 0)

	second := p.rotate(t, "second")
	c.pass(10 * time.Second)
	expect("a token with an unknown key fetches the keys", try(second), nf.Internal, 2)
	expect("a token with a withdrawn key is rejected", try(first), nf.Unauthenticated, 0)
	expect("repeated unknown keys do not fetch the keys each time", try(first), nf.Unauthenticated, 0)

	p.stop(true)
	c.pass(time.Hour)
	expect("while the provider is unreachable, cached keys are valid", try(second), nf.Internal, 1)
	expect("an unreachable provider is not asked for each token", try(second), nf.Internal, 0)
	p.stop(false)
	third := p.rotate(t, "third")
	c.pass(time.Hour)
	expect("cached keys are fetched again when they are old", try(second), nf.Unauthenticated, 2)
	expect("the new key is cached", try(third), nf.Internal, 0)
}

// TestIssuerOfMany sends the tokens of many clients while the provider is slow.
func TestIssuerOfMany(t *testing.T) {
	t.Parallel()
	c, p := newClock(), newProvider(t)
	a := access.NewAuthenticator(trusting(t, c, p, ""))
	token := "Bearer " + sign(t, jwt.SigningMethodES256, p.key("first"), p.claims(c, nil))
	var together sync.WaitGroup
	for range 20 {
		together.Go(func() {
			if _, err := a.Authenticate(request(t, token)); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	if n := p.asked.Load(); n != 2 {
		t.Errorf("20 concurrent clients cause %d requests to the provider, want 2", n)
	}
}

// TestIssuerOverHTTP checks that keys are not fetched over a connection on which
// others can replace them.
func TestIssuerOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClock()
	var document string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(document))
	}))
	defer server.Close()
	for name, tc := range map[string]struct{ reason, document string }{
		"Keys":     {"the URL of the keys must be https", `{"issuer": "` + server.URL + `", "jwks_uri": "http://keys.example.org/"}`},
		"NoKeys":   {"the URL of the keys is required", `{"issuer": "` + server.URL + `"}`},
		"Redirect": {"a redirect to other keys is not followed", `{"issuer": "` + server.URL + `", "jwks_uri": "` + server.URL + `/elsewhere"}`},
		"NotKeys":  {"a document without keys is rejected", `{"issuer": "` + server.URL + `", "jwks_uri": "` + server.URL + `/keys"}`},
		"Issuer":   {"the document must name the configured issuer", `{"issuer": "https://elsewhere.example.org", "jwks_uri": "https://elsewhere.example.org/keys"}`},
		"NotJSON":  {"a document that is not JSON is rejected", `hello`},
		"Endless":  {"a document that is too large is rejected", `{"issuer": "` + strings.Repeat("x", 2<<20) + `"}`},
	} {
		document = tc.document
		a := access.NewAuthenticator(rulesOf(t, c, "oidc: {issuer: '"+server.URL+"', audience: x}\n", nil))
		if _, err := a.Authenticate(request(t, "Bearer x.y.z")); nf.KindOf(err) != nf.Unreachable {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
}
