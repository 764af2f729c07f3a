package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// certificates is a chain of certificates that expire at the given times, and
// the key of the first, as a kubeconfig has them.
func certificates(t *testing.T, expiries ...time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var chain []byte
	for i, end := range expiries {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotBefore: end.Add(-time.Hour), NotAfter: end}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.StdEncoding.EncodeToString
	return encode(chain), encode(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// token is a JWT with the claims and a signature that is not checked.
func token(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

func TestCredentialOf(t *testing.T) {
	soon, later := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2040, 1, 2, 3, 4, 5, 0, time.UTC)
	user := func(expiries ...time.Time) string {
		cert, key := certificates(t, expiries...)
		return "client-certificate-data: " + cert + ", client-key-data: " + key
	}
	cases := map[string]struct {
		reason string
		user   string
		want   nf.Credential
	}{
		"none":            {"nobody in particular", "", nf.Credential{}},
		"password":        {"a password does not expire", "username: u, password: p", nf.Credential{Kind: "basic"}},
		"certificate":     {"a certificate says when", user(soon), nf.Credential{Kind: "client-certificate", Expires: soon}},
		"chain":           {"a chain holds as long as its weakest link", user(later, soon), nf.Credential{Kind: "client-certificate", Expires: soon}},
		"both":            {"the certificate is looked at first", user(later) + ", token: " + token(`{"exp":1893553445}`), nf.Credential{Kind: "client-certificate", Expires: later}},
		"service account": {"a JWT says when", "token: " + token(`{"iss":"kubernetes/serviceaccount","exp":1893553445}`), nf.Credential{Kind: "token", Expires: soon}},
		"fraction":        {"seconds may have a fraction", "token: " + token(`{"exp":1893553445.5}`), nf.Credential{Kind: "token", Expires: soon}},
		"padded":          {"some issuers pad", "token: " + strings.Replace(token(`{"exp":1893553445}`), ".c", "=.c", 1), nf.Credential{Kind: "token", Expires: soon}},
		"for ever":        {"a JWT need not say", "token: " + token(`{"iss":"kubernetes/serviceaccount"}`), nf.Credential{Kind: "token"}},
		"not a number":    {"a claim that is none", "token: " + token(`{"exp":"tomorrow"}`), nf.Credential{Kind: "token"}},
		"absurd":          {"a time that no clock shows", "token: " + token(`{"exp":1e300}`), nf.Credential{Kind: "token"}},
		"opaque":          {"a token that says nothing", "token: 31ada4fd-adec-460c-809a-9e56ceb75269", nf.Credential{Kind: "token"}},
		"three parts":     {"a token that looks like a JWT", "token: a.b!.c", nf.Credential{Kind: "token"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			diff(t, tc.reason, tc.want, credentialOf(accessTo(t, []byte(testConfig(`server: "https://127.0.0.1:1"`, tc.user)))))
		})
	}
}

func FuzzTokenExpiry(f *testing.F) {
	f.Add(token(`{"exp":1893553445}`))
	f.Add(token(`{"exp":-1}`))
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		if end := nf.TokenExpiry(token); !end.IsZero() && (end.Before(time.Unix(0, 0)) || end.Year() > 2110) {
			t.Errorf("a token expires on %v", end)
		}
	})
}

func TestStateTellsExpiry(t *testing.T) {
	const day = 24 * time.Hour
	cases := map[string]struct {
		reason  string
		expires time.Duration // from now; 0: never
		code    int
		want    nf.RegionCondition
		message string
	}{
		"never":   {"a password is good for ever", 0, 200, nf.RegionAvailable, ""},
		"far":     {"there is time", 15 * day, 200, nf.RegionAvailable, ""},
		"near":    {"somebody should act", 13 * day, 200, nf.RegionExpiring, "its token expires on 2000-01-14T00:00:00Z"},
		"past":    {"a region that still answers", -day, 200, nf.RegionExpiring, "its token expired on 1999-12-31T00:00:00Z"},
		"refused": {"the message says why", -day, 401, nf.RegionUnreachable, "its token expired on 1999-12-31T00:00:00Z"},
		"silent":  {"what is not the credential's fault is not said to be", -day, 502, nf.RegionUnknown, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _ := stubbed(map[string]stub{"east": func(*http.Request) (*http.Response, error) { return answer(tc.code, "") }})
				user := "username: u, password: p"
				if tc.expires != 0 {
					user = "token: " + token(fmt.Sprintf(`{"exp":%d}`, time.Now().Add(tc.expires).Unix()))
				}
				c, err := p.Open("east", accessTo(t, []byte(testConfig(`server: "https://127.0.0.1:1"`, user))))
				if err != nil {
					t.Fatal(err)
				}
				_ = c.client.verb(http.MethodGet).AbsPath("/version").MaxRetries(0).Do(t.Context()).Error()
				got := p.State("east")
				if got.Condition != tc.want || !strings.HasSuffix(got.Message, tc.message) || tc.message == "" && got.Message != "" {
					t.Errorf("%s: the state is %+v, want %s, %q", tc.reason, got, tc.want, tc.message)
				}
			})
		})
	}
}

func TestStateBeginsToExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := stubbed(map[string]stub{"east": well})
		start := time.Now()
		expiring := token(fmt.Sprintf(`{"exp":%d}`, start.Add(15*24*time.Hour).Unix()))
		c, err := p.Open("east", nf.Access{Server: "https://127.0.0.1:1", Token: nf.Secret(expiring)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.tryOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(48 * time.Hour)
		if s := p.State("east"); s.Condition != nf.RegionExpiring || !s.Since.Equal(start.Add(24*time.Hour)) {
			t.Errorf("it is expiring since %v, want a day after %v: %+v", s.Since, start, s)
		}
	})
}
