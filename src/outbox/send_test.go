package outbox_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
)

func hosts(t testing.TB, list ...string) outbound.Hosts {
	t.Helper()
	h, err := outbound.ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestPostIsGuarded posts to a receiver on this machine, past the check of the
// URL: what is called is looked at when it is called.
func TestPostIsGuarded(t *testing.T) {
	t.Parallel()
	received := make(chan *http.Request, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			code := http.StatusTemporaryRedirect
			if r.URL.Query().Get("get") != "" {
				code = http.StatusFound
			}
			http.Redirect(w, r, to, code)
			return
		}
		received <- r
	}))
	t.Cleanup(receiver.Close)
	at, err := url.Parse(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	port := ":" + at.Port()
	redirect := func(to string) string { return "http://127.0.0.1" + port + "/?to=" + url.QueryEscape(to) }
	cases := map[string]struct {
		reason  string
		allowed []string
		url     string
		status  int
		fails   bool // the status is 0, or that of the last redirect
		arrives bool
	}{
		"allowed":            {"the operator has allowed it", []string{"127.0.0.1"}, "http://127.0.0.1" + port, 200, false, true},
		"not allowed":        {"he has not", nil, "http://127.0.0.1" + port, 0, true, false},
		"name":               {"where a name leads counts", nil, "http://localhost" + port, 0, true, false},
		"allowed name":       {"a name that he allows may lead anywhere", []string{"localhost"}, "http://localhost" + port, 200, false, true},
		"mapped":             {"another form of the address is the same", nil, "http://[::ffff:127.0.0.1]" + port, 0, true, false},
		"redirect":           {"a redirect is followed", []string{"127.0.0.1"}, redirect("http://127.0.0.1" + port + "/end"), 200, false, true},
		"redirect to hidden": {"but not to where nobody may", []string{"127.0.0.1"}, redirect("http://localhost" + port), 307, true, false},
		"redirect to cloud":  {"likewise", []string{"127.0.0.1"}, redirect("http://169.254.169.254/"), 307, true, false},
		"redirect to file":   {"nor to another scheme", []string{"127.0.0.1"}, redirect("file:///etc/passwd"), 307, true, false},
		"redirect with user": {"nor with a password", []string{"127.0.0.1"}, redirect("http://u:p@127.0.0.1" + port), 307, true, false},
		"redirect as GET":    {"a redirect that makes a GET of it tells nobody anything", []string{"127.0.0.1"}, redirect("http://127.0.0.1"+port) + "&get=1", 302, false, false},
		"redirect for ever":  {"nor for ever", []string{"127.0.0.1"}, redirect(redirect(redirect(redirect(redirect("http://127.0.0.1" + port))))), 307, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, err := outbox.NewSend(hosts(t, tc.allowed...), "letter")(t.Context(), outbox.Request{
				Method: http.MethodPost, URL: tc.url, Header: map[string]string{"X": "y"}, Body: []byte(`{"a":1}`),
			})
			if status != tc.status || (err != nil) != tc.fails {
				t.Errorf("%s: got %d, %v; want %d", tc.reason, status, err, tc.status)
			}
			if err != nil && strings.Contains(err.Error(), "to=") {
				t.Errorf("the error tells the URL: %v", err)
			}
			select {
			case r := <-received:
				if !tc.arrives || r.Method != http.MethodPost || r.Header.Get("X") != "y" {
					t.Errorf("%s: %s %s has arrived", tc.reason, r.Method, r.URL)
				}
			default:
				if tc.arrives {
					t.Errorf("%s: nothing has arrived", tc.reason)
				}
			}
		})
	}
}

// TestRedirectsTellLittle follows redirects of a receiver to a neighbor, which
// is another target on another port.
func TestRedirectsTellLittle(t *testing.T) {
	t.Parallel()
	received := make(chan http.Header, 100)
	keep := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header })
	neighbor, secure := httptest.NewServer(keep), httptest.NewServer(nil)
	t.Cleanup(neighbor.Close)
	t.Cleanup(secure.Close)
	secure.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			keep(w, r)
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
	})
	sent := map[string]string{
		"Authorization": "Basic eA==", "X-Api-Key": "k", "Private-Token": "t", "Content-Type": "application/json", outbox.SignatureHeader: "sha256=0",
	}
	for name, tc := range map[string]struct {
		reason string
		to     string
		arrive []string
	}{
		"same":     {"a path of one target gets all headers", "/end", []string{"Authorization", "Content-Type", "Private-Token", "X-Api-Key", outbox.SignatureHeader}},
		"neighbor": {"another target gets no header that may be a credential", neighbor.URL, []string{"Content-Type", outbox.SignatureHeader}},
	} {
		t.Run(name, func(t *testing.T) {
			address := secure.URL + "/?token=hidden&to=" + url.QueryEscape(tc.to)
			status, err := outbox.NewSend(hosts(t, "127.0.0.1"), "letter")(t.Context(), outbox.Request{Method: http.MethodPost, URL: address, Header: sent})
			if status != http.StatusOK || err != nil {
				t.Fatalf("got %d, %v", status, err)
			}
			got := <-received
			for header := range sent {
				if want := slices.Contains(tc.arrive, header); want != (got.Get(header) != "") {
					t.Errorf("%s: %s arrives: %t", tc.reason, header, !want)
				}
			}
			if from := got.Get("Referer"); from != "" {
				t.Errorf("the next target learns the URL of the one before: %s", from)
			}
		})
	}
}

// TestFailures looks at the errors that are stored, logged, and shown to the
// user who named the target.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		answer string // on a raw connection
		status int
		want   string
	}{
		"banner":    {"a service that does not speak HTTP shows its banner to nobody", "SSH-2.0-OpenSSH_9.6 secret\r\n", 0, "cannot post the letter: the target sent no valid HTTP response"},
		"header":    {"nor does a header", "HTTP/1.1 200 OK\r\nsecret\r\n\r\n", 0, "cannot post the letter: the target sent no valid HTTP response"},
		"location":  {"nor a redirect", "HTTP/1.1 307 x\r\nLocation: http://%secret\r\nContent-Length: 0\r\n\r\n", 0, "cannot post the letter: the target sent no valid HTTP response"},
		"nothing":   {"a connection that ends has no response", "", 0, "cannot post the letter: the target sent no valid HTTP response"},
		"dead end":  {"a redirect to a place that does not respond", "HTTP/1.1 307 x\r\nLocation: http://127.0.0.1:1/secret\r\nContent-Length: 0\r\n\r\n", 307, "cannot post the letter: 127.0.0.1:1: connection refused"},
		"forbidden": {"a redirect to a place that nobody may reach", "HTTP/1.1 308 x\r\nLocation: http://localhost/secret\r\nContent-Length: 0\r\n\r\n", 308, "cannot post the letter: its redirect leads to an address that only the operator may allow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var answering sync.WaitGroup
			answering.Go(func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 64<<10))
					_, _ = io.WriteString(conn, tc.answer)
					_ = conn.Close()
				}
			})
			t.Cleanup(func() {
				_ = listener.Close()
				answering.Wait()
			})
			status, err := outbox.NewSend(hosts(t, "127.0.0.1"), "letter")(t.Context(), outbox.Request{Method: http.MethodPost, URL: "http://" + listener.Addr().String() + "/?token=secret"})
			if err == nil || err.Error() != tc.want || status != tc.status {
				t.Errorf("%s: got %d, %v; want %d, %s", tc.reason, status, err, tc.status, tc.want)
			}
		})
	}
}

// TestDowngrade has an HTTPS target redirect to one without TLS.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	from, to := &http.Request{Method: http.MethodPost}, &http.Request{Method: http.MethodPost, Header: http.Header{}}
	from.URL, to.URL = &url.URL{Scheme: "https", Host: "a.example"}, &url.URL{Scheme: "http", Host: "a.example"}
	if err := outbox.Follow(outbound.Hosts{}, to, []*http.Request{from}); err == nil {
		t.Error("a request that was encrypted would be sent in clear text")
	}
	to.URL.Scheme = "https"
	if err := outbox.Follow(outbound.Hosts{}, to, []*http.Request{from}); err != nil {
		t.Errorf("got %v, want that it is followed", err)
	}
}

// TestPostReadsLittle has a receiver that answers without end.
func TestPostReadsLittle(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for ctx.Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(cancel)
	status, err := outbox.NewSend(hosts(t, "127.0.0.1"), "letter")(t.Context(), outbox.Request{Method: http.MethodPost, URL: receiver.URL})
	if status != http.StatusOK || err != nil {
		t.Errorf("got %d, %v; want 200: nobody reads what a receiver has to say", status, err)
	}
}

// TestSign is what a receiver in another language would test his own with:
// printf '1700000000.{}' | openssl dgst -sha256 -hmac key.
func TestSign(t *testing.T) {
	t.Parallel()
	const want = "sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"
	got := outbox.Sign([]byte("key"), "1700000000", []byte("{}"))
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCertificate sends to a target that requires a certificate.
func TestCertificate(t *testing.T) {
	t.Parallel()
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	target.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	target.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelWarn) // it logs what it rejects
	target.StartTLS()
	t.Cleanup(target.Close)
	trusted := target.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, tc := range map[string]struct {
		reason string
		tls    *tls.Config
		status int
	}{
		"Certificate": {"it is presented", &tls.Config{RootCAs: trusted, Certificates: target.TLS.Certificates}, 204},
		"None":        {"the target requires one", &tls.Config{RootCAs: trusted}, 0},
		"Untrusted":   {"the target's is verified", &tls.Config{Certificates: target.TLS.Certificates}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			send := outbox.NewHTTPSend(outbox.SendConfig{
				Hosts: hosts(t, "127.0.0.1"), Noun: "letter", TLS: func(context.Context) *tls.Config { return tc.tls },
			})
			status, err := send(t.Context(), outbox.Request{Method: http.MethodPost, URL: target.URL, Body: []byte("{}")})
			if status != tc.status || (err != nil) != (tc.status == 0) {
				t.Errorf("%s: got %d, %v", tc.reason, status, err)
			}
		})
	}
}
