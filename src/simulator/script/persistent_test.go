package script_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/simulator/script"
)

// TestPersistent has servers that cut connections.
func TestPersistent(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		cut      func(http.ResponseWriter)
		cuts     int
		repeated string
	}{
		"well":        {"a response that comes at once is not marked", nil, 0, ""},
		"no response": {"the request may have had an effect", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 2, "true"},
		"half": {"a response is whole or there is none", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "begin")
			panic(http.ErrAbortHandler)
		}, 1, "true"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var bodies []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				bodies = append(bodies, string(body))
				cut := len(bodies) <= tc.cuts
				mu.Unlock()
				if cut {
					tc.cut(w)
				}
				w.WriteHeader(http.StatusConflict)
			}))
			t.Cleanup(server.Close)
			client := http.Client{Transport: script.Persistent{Transport: &http.Transport{DisableKeepAlives: true}}}
			resp, err := client.Post(server.URL, "text/plain", strings.NewReader("a"))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if want := strings.Repeat("a", tc.cuts+1); strings.Join(bodies, "") != want {
				t.Errorf("the server got %q, want %q", bodies, want)
			}
			if got := resp.Header.Get(script.Repeated); got != tc.repeated || resp.StatusCode != http.StatusConflict {
				t.Errorf("%s: status %d, mark %q", tc.reason, resp.StatusCode, got)
			}
		})
	}
	t.Run("the client gives up", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			cancel()
			panic(http.ErrAbortHandler)
		}))
		t.Cleanup(server.Close)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: script.Persistent{Transport: &http.Transport{DisableKeepAlives: true}}}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			t.Error("there is a response after the context ended")
		}
	})
}
