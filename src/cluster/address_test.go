package cluster

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

func TestCheckAddresses(t *testing.T) {
	cases := map[string]struct {
		reason  string
		allow   []string
		cluster string
		field   string // of the violation; empty: none
	}{
		"private":         {"sites are in private networks", nil, `server: "https://10.1.2.3:6443"`, ""},
		"name":            {"where a name leads is seen when it is called", nil, `server: "https://east.example.org:6443"`, ""},
		"loopback":        {"the service's own machine", nil, `server: "https://127.0.0.1:6443"`, "clusters[].cluster.server"},
		"loopback 6":      {"likewise", nil, `server: "https://[::1]:6443"`, "clusters[].cluster.server"},
		"localhost":       {"likewise", nil, `server: "https://localhost:6443"`, "clusters[].cluster.server"},
		"mapped":          {"in another form", nil, `server: "https://[::ffff:127.0.0.1]:6443"`, "clusters[].cluster.server"},
		"metadata":        {"clouds answer there with credentials", nil, `server: "http://169.254.169.254"`, "clusters[].cluster.server"},
		"link-local":      {"likewise", nil, `server: "https://[fe80::1]:6443"`, "clusters[].cluster.server"},
		"allowed":         {"the operator may allow it", []string{"127.0.0.0/8"}, `server: "https://127.0.0.1:6443"`, ""},
		"allowed name":    {"likewise", []string{"localhost"}, `server: "https://localhost:6443"`, ""},
		"allowed another": {"and nothing else by that", []string{"127.0.0.2"}, `server: "https://127.0.0.1:6443"`, "clusters[].cluster.server"},
		"proxy":           {"a proxy is called, too", nil, `server: "https://10.1.2.3", proxy-url: "http://127.0.0.1:3128"`, "clusters[].cluster.proxy-url"},
		"socks proxy":     {"whatever it speaks", nil, `server: "https://10.1.2.3", proxy-url: "socks5://169.254.1.1:1080"`, "clusters[].cluster.proxy-url"},
		"behind proxy":    {"a proxy would call it", nil, `server: "https://169.254.169.254", proxy-url: "http://10.1.2.3:3128"`, "clusters[].cluster.server"},
		"good proxy":      {"a proxy may be anywhere else", nil, `server: "https://10.1.2.3", proxy-url: "http://10.9.9.9:3128"`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hosts, err := outbound.ParseHosts(tc.allow)
			if err != nil {
				t.Fatal(err)
			}
			p := New(PoolConfig{Hosts: hosts})
			kubeconfig := []byte(testConfig(tc.cluster, "token: t"))
			err = p.Check(accessTo(t, kubeconfig))
			v := nf.ViolationsOf(err)
			if tc.field == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if len(v) != 1 || v[0].Field != tc.field || nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: got %v, want a violation of %s", tc.reason, err, tc.field)
			}
			if _, err := p.Probe(t.Context(), accessTo(t, kubeconfig)); nf.KindOf(err) != nf.Invalid {
				t.Errorf("%s: it is probed: %v", tc.reason, err)
			}
		})
	}
}

// TestNamesAreCheckedWhenTheyAreCalled uses a name of this machine, which
// only its address shows.
func TestNamesAreCheckedWhenTheyAreCalled(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(server.Close)
	kubeconfig := []byte(testConfig(`server: "`+strings.Replace(server.URL, "127.0.0.1", "localhost", 1)+`"`, "token: t"))
	c, err := New(PoolConfig{}).Open("east", accessTo(t, kubeconfig)) // as a region that was registered before the check was there
	if err != nil {
		t.Fatal(err)
	}
	err = c.tryOnce(t.Context())
	wantKind(t, err, nf.Unreachable)
	if nf.ReasonOf(err) != "not-allowed" || asked > 0 {
		t.Errorf("it was asked %d times, reason %q: %v", asked, nf.ReasonOf(err), err)
	}
}

// TestRedirectsAreNotFollowed has an API server send requests elsewhere: they
// would take the region's credentials there.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere++
		_, _ = w.Write([]byte("internal page"))
	}))
	t.Cleanup(other.Close)
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/secret-path", code)
		}))
		t.Cleanup(server.Close)
		kubeconfig := []byte(testConfig(`server: "`+server.URL+`"`, "token: t"))
		c := openAt(t, kubeconfig)
		for path, read := range readingPaths() {
			err := read(t.Context(), c)
			if path == "checkReady" {
				continue // its outcome is the region's condition
			}
			want := nf.Unreachable
			if path == "Index" || path == "Document" {
				want = nf.Unsupported // objects are then checked without it
			}
			if nf.KindOf(c.client.region.fail(t.Context(), "ask", "it", err)) != want || strings.Contains(err.Error(), "secret-path") || strings.Contains(err.Error(), "internal") {
				t.Errorf("%d: %s: %v", code, path, err)
			}
		}
		if _, err := local(t).Probe(t.Context(), accessTo(t, kubeconfig)); nf.ReasonOf(err) != "not-kubernetes" {
			t.Errorf("%d: a probe: %v", code, err)
		}
	}
	if elsewhere > 0 {
		t.Errorf("it went where it was sent %d times", elsewhere)
	}
}
