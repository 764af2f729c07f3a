package outbox_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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
		status  int // 0: an error
		arrives bool
	}{
		"allowed":            {"the operator has allowed it", []string{"127.0.0.1"}, "http://127.0.0.1" + port, 200, true},
		"not allowed":        {"he has not", nil, "http://127.0.0.1" + port, 0, false},
		"name":               {"where a name leads counts", nil, "http://localhost" + port, 0, false},
		"allowed name":       {"a name that he allows may lead anywhere", []string{"localhost"}, "http://localhost" + port, 200, true},
		"mapped":             {"another form of the address is the same", nil, "http://[::ffff:127.0.0.1]" + port, 0, false},
		"redirect":           {"a redirect is followed", []string{"127.0.0.1"}, redirect("http://127.0.0.1" + port + "/end"), 200, true},
		"redirect to hidden": {"but not to where nobody may", []string{"127.0.0.1"}, redirect("http://localhost" + port), 0, false},
		"redirect to cloud":  {"likewise", []string{"127.0.0.1"}, redirect("http://169.254.169.254/"), 0, false},
		"redirect to file":   {"nor to another scheme", []string{"127.0.0.1"}, redirect("file:///etc/passwd"), 0, false},
		"redirect with user": {"nor with a password", []string{"127.0.0.1"}, redirect("http://u:p@127.0.0.1" + port), 0, false},
		"redirect as GET":    {"a redirect that makes a GET of it tells nobody anything", []string{"127.0.0.1"}, redirect("http://127.0.0.1"+port) + "&get=1", 302, false},
		"redirect for ever":  {"nor for ever", []string{"127.0.0.1"}, redirect(redirect(redirect(redirect(redirect("http://127.0.0.1" + port))))), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, err := outbox.NewSend(hosts(t, tc.allowed...), "letter")(t.Context(), outbox.Request{
				Method: http.MethodPost, URL: tc.url, Header: map[string]string{"X": "y"}, Body: []byte(`{"a":1}`),
			})
			if status != tc.status || (err == nil) != (tc.status != 0) {
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
