package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

func TestProbe(t *testing.T) {
	got, err := local(t).Probe(t.Context(), accessTo(t, clustertest.Kubeconfig(t)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Version, "v1.") || !strings.HasPrefix(got.Server, "https://") || got.Time.IsZero() {
		t.Errorf("a probe tells version, server and time: %+v", got)
	}
	for _, gv := range []string{"v1", "apps/v1"} {
		if !slices.Contains(got.APIs, gv) {
			t.Errorf("%s is not among the APIs %v", gv, got.APIs)
		}
	}
	if !slices.IsSorted(got.APIs) {
		t.Errorf("APIs are not sorted: %v", got.APIs)
	}
}

// TestProbesShareLimits probes one server many times at once, as the
// registrations of a hostile client would: together they have the limits of one
// region.
func TestProbesShareLimits(t *testing.T) {
	const most = 3
	arrived, answer := make(chan struct{}, 10*most), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	few := regionLimits()
	few.turns = most
	pool := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback(), limits: few})
	var probes sync.WaitGroup
	for range 2 * most {
		probes.Go(func() {
			_, err := pool.Probe(t.Context(), nf.Access{Server: server.URL, Token: nf.Secret("t")})
			wantKind(t, err, nf.Unreachable)
		})
	}
	for range most {
		<-arrived
	}
	if pool.probes.turns.TryAcquire(1) {
		t.Errorf("%d probes wait for a server, and leave a turn", most)
	}
	close(answer)
	probes.Wait()
	if !pool.probes.turns.TryAcquire(most) {
		t.Error("a turn was not given back")
	}
}

func TestProbeFails(t *testing.T) {
	sandbox := accessTo(t, clustertest.Kubeconfig(t))
	trusting := `server: "` + sandbox.Server + `", certificate-authority-data: ` + base64.StdEncoding.EncodeToString(sandbox.CA)
	text := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello")) }))
	defer text.Close()
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	stranger.StartTLS()
	defer stranger.Close()
	cases := map[string]struct {
		reason string
		server string
		user   string
		want   string
	}{
		"dns":            {"a name that cannot exist", `server: "https://cluster.invalid"`, "", "dns"},
		"closed port":    {"nobody listens", `server: "https://` + closedPort(t) + `"`, "", "tcp"},
		"black hole":     {"a server that says nothing", `server: "http://` + blackHole(t) + `"`, "", "timeout"},
		"black hole TLS": {"a server that says nothing, to TLS", `server: "https://` + blackHole(t) + `"`, "", "timeout"},
		"another CA":     {"a certificate that the kubeconfig does not trust", `server: "` + stranger.URL + `"`, "", "tls"},
		"plain HTTP":     {"https to a server that speaks http", `server: "` + strings.Replace(text.URL, "http:", "https:", 1) + `"`, "", "tls"},
		"a web page":     {"a server of something else", `server: "` + text.URL + `"`, "", "not-kubernetes"},
		"not found":      {"a server of something else", trusted(stranger), "", "not-kubernetes"},
		"bad token":      {"the API server does not know us", trusting, "token: wrong", "unauthorized"},
		"nobody":         {"an anonymous user may do nothing", trusting, "", "forbidden"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.want == "timeout" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			_, err := local(t).Probe(ctx, accessTo(t, []byte(testConfig(tc.server, tc.user))))
			wantKind(t, err, nf.Unreachable)
			if got := nf.ReasonOf(err); got != tc.want {
				t.Errorf("%s: reason is %q, want %q: %v", tc.reason, got, tc.want, err)
			}
			for _, words := range []string{"dial tcp", "read tcp", "x509:", "tls:", "Get \"", "Post \"", "context deadline"} {
				if strings.Contains(err.Error(), words) {
					t.Errorf("%s: the error has words of Go (%s): %v", tc.reason, words, err)
				}
			}
		})
	}
}

// closedPort is an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// blackHole is an address that takes connections and never answers.
func blackHole(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func trusted(s *httptest.Server) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return `server: "` + s.URL + `", certificate-authority-data: ` + base64.StdEncoding.EncodeToString(ca)
}

func TestProbeOfUserWithoutRights(t *testing.T) {
	c, ns := sandbox(t)
	mustApply(t, c, "vnf-1", objects(t, "vnf-1", ns, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: nobody}}`)...)
	var answer struct{ Status struct{ Token string } }
	body, err := c.client.verb(http.MethodPost).AbsPath("/api/v1/namespaces", ns, "serviceaccounts/nobody/token").
		Body([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)).Do(t.Context()).Raw()
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		t.Fatal(err)
	}
	full := accessTo(t, clustertest.Kubeconfig(t))
	kubeconfig := testConfig(`server: "`+full.Server+`", certificate-authority-data: `+base64.StdEncoding.EncodeToString(full.CA), "token: "+answer.Status.Token)
	if _, err := local(t).Probe(t.Context(), accessTo(t, []byte(kubeconfig))); err != nil {
		t.Errorf("who is known may read what is served, whatever else he may not: %v", err)
	}
	poor := openAt(t, []byte(kubeconfig))
	_, err = poor.Apply(t.Context(), instance("vnf-1"), objects(t, "vnf-1", ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`))
	wantKind(t, err, nf.Failed)
	if nf.ReasonOf(err) != "forbidden" {
		t.Errorf("reason is %q, want forbidden: %v", nf.ReasonOf(err), err)
	}
	const rule = `the region's account needs a rule for {apiGroups: [""], resources: ["configmaps"]}`
	if err == nil || !strings.Contains(err.Error(), rule) {
		t.Errorf("the error %v does not say that %s", err, rule)
	}
}
