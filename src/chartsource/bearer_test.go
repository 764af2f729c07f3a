package chartsource_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/chartsource"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// tokens is a token service that knows the user ann.
type tokens struct {
	mu    sync.Mutex
	asked []string // "service [scope] user"
}

func (s *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, pass, _ := r.BasicAuth()
	query := r.URL.Query()
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%s %s %s", query.Get("service"), query["scope"], user))
	s.mu.Unlock()
	if user != "ann" || pass != password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = fmt.Fprintf(w, `{"access_token": %q}`, token)
}

// TestTokenService fetches from a registry whose token service has another name
// and an address that oras-go rejects.
func TestTokenService(t *testing.T) {
	t.Parallel()
	good := outcome{Archive: archive, Version: "1.10.0+build.5", Source: "oci://HOST/charts/web:1.10.0_build.5"}
	bad := func(kind nf.Kind, reason string) outcome { return outcome{Kind: kind, Reason: reason, Failed: true} }
	both, once := []string{"127.0.0.1", "localhost"}, []string{"r [repository:charts/web:pull] ann"}
	cases := map[string]struct {
		reason     string
		allow      []string
		password   string
		challenges []string // default: that of the fake registry
		want       outcome
		asked      []string // of the token service
	}{
		"Allowed":    {"one token serves all requests of a fetch", both, password, nil, good, once},
		"NotAllowed": {"the operator must allow the token service", []string{"127.0.0.1"}, password, nil, bad(nf.Forbidden, ""), nil},
		"Wrong":      {"the token service rejects the password", both, "x", nil, bad(nf.Unreachable, "unauthorized"), once},
		"Unquoted":   {"a challenge may have spaces and values without quotes", both, password, []string{`bearer  realm = "REALM" , service=r, scope="repository:charts/web:pull"`}, good, once},
		"Escaped":    {"a value may have escapes", both, password, []string{`Bearer realm="REALM",service="a\"b"`}, good, []string{`a"b [repository:charts/web:pull] ann`}},
		"Second":     {"unknown challenges are skipped, and the scope is known without a challenge", both, password, []string{"Negotiate", `Bearer realm="REALM",service="r"`}, good, once},
		"Joined":     {"the parameters of a second challenge are not those of the first", both, password, []string{`Bearer realm="REALM",service="r", Basic realm="x"`}, good, once},
		"NoRealm":    {"a challenge must name the token service", both, password, []string{`Bearer service="r"`}, bad(nf.Unreachable, "unavailable"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, service := newRegistry(), &tokens{}
			open, login := httptest.NewServer(r), httptest.NewServer(service)
			t.Cleanup(open.Close)
			t.Cleanup(login.Close)
			r.auth, r.realm = "bearer", strings.Replace(login.URL, "127.0.0.1", "localhost", 1)+"/token"
			if tc.challenges != nil {
				r.challenges = tc.challenges
			}
			host := strings.TrimPrefix(open.URL, "http://")
			s := newSource(t, chartsource.Config{Allow: tc.allow, PlainHTTP: both})
			ref := chartsource.ChartRef{URL: "oci://" + host + "/" + repository, Version: "^1", Username: "ann", Password: nf.Secret(tc.password)}
			if diff := cmp.Diff(tc.want, fetch(t, s, ref, host)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			service.mu.Lock()
			defer service.mu.Unlock()
			if diff := cmp.Diff(tc.asked, service.asked); diff != "" {
				t.Errorf("%s: the token service was asked (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRegistryCredentialsStay checks that a registry cannot redirect credentials to
// another server.
func TestRegistryCredentialsStay(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, auth string
		blob, realm  string // OTHER is the other server, LED redirects to it
		want         []string
	}{
		"Basic":  {"another port is another server", "basic", "OTHER/blob", "", []string{"/blob "}},
		"Bearer": {"a token is a credential", "bearer", "OTHER/blob", "", []string{"/blob "}},
		"Realm":  {"a token service redirects", "bearer", "", "LED/token", []string{"/token "}},
		"Twice":  {"a redirect follows a redirect", "basic", "LED/token", "", []string{"/token "}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var told []string
			other, roots := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, r.URL.Path+" "+r.Header.Get("Authorization"))
				_, _ = w.Write([]byte(archive))
			}))
			led, _ := serve(t, pages{"/token": "-> " + other.String() + "/token"})
			places := strings.NewReplacer("OTHER", other.String(), "LED", led.String())
			r := newRegistry()
			u, _ := serve(t, r)
			r.url, r.auth, r.redirect, r.realm = u.String(), tc.auth, places.Replace(tc.blob), places.Replace(tc.realm)
			s := newSource(t, chartsource.Config{Allow: []string{"127.0.0.1"}, Roots: roots}) // all of httptest have one certificate
			ref := chartsource.ChartRef{URL: "oci://" + u.Host + "/" + repository, Version: "1.2.0", Username: "ann", Password: nf.Secret(password)}
			got := fetch(t, s, ref, u.Host)
			if got.Failed != (tc.realm != "") {
				t.Errorf("%s: the result is %+v", tc.reason, got)
			}
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(tc.want, told); diff != "" {
				t.Errorf("%s: another server was told (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
