package northbound_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// TestHead asks a real server, which treats HEAD in its own way.
func TestHead(t *testing.T) {
	t.Parallel()
	flushing := func(w http.ResponseWriter, r *http.Request) error {
		_, _ = fmt.Fprint(w, "event: operation\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
		if r.Header.Get("Last-Event-ID") != "" { // only HEAD is asked with it here: a GET would never end
			<-r.Context().Done()
		}
		return nil
	}
	server := httptest.NewServer(handler(t, northbound.Config{APIs: []northbound.API{routes{
		"GET /v1/operations":                       answers(map[string]any{"operations": []any{}}),
		"GET /v1/operations/{operation_id}":        fails(nf.E(nf.NotFound, "get", "operation x", nil)),
		"GET /v1/operations/{operation_id}/events": flushing,
		"POST /v1/backup":                          nothing,
	}}}))
	t.Cleanup(server.Close)
	cases := map[string]struct {
		reason, path string
		status       int
		same         []string // headers that a GET has as well
	}{
		"Answer":       {"the header of the answer, with the length of its body", "/v1/operations?limit=1", 200, []string{"Content-Type", "Content-Length", "Cache-Control"}},
		"Service":      {"of what the service says of itself", "/swagger.json", 200, []string{"Content-Type"}},
		"Refusal":      {"a refusal is one, too", "/v1/operations/x", 404, []string{"Content-Type"}},
		"Contract":     {"the contract holds", "/v1/operations?colour=red", 400, []string{"Content-Type"}},
		"NotReadable":  {"what cannot be read has no header either", "/v1/backup", 405, []string{"Content-Type", "Allow"}},
		"EndlessBegun": {"a stream ends with its header", "/v1/operations/x/events", 200, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head := say(t, http.MethodHead, server.URL+c.path, "1")
			if head.status != c.status || head.body > 0 {
				t.Fatalf("%s: HEAD is answered %d with %d bytes, want %d without any", c.reason, head.status, head.body, c.status)
			}
			got := say(t, http.MethodGet, server.URL+c.path, "")
			for _, field := range c.same {
				if diff := cmp.Diff(got.header[field], head.header[field]); diff != "" {
					t.Errorf("%s: %s is not that of GET (-GET +HEAD):\n%s", c.reason, field, diff)
				}
			}
		})
	}
}

// said is an answer: its status and header, and how long its body was.
type said struct {
	status int
	header http.Header
	body   int
}

func say(t *testing.T, method, url, last string) said {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return said{res.StatusCode, res.Header, len(body)}
}

func answers(document any) northbound.Handler {
	return func(w http.ResponseWriter, _ *http.Request) error {
		return northbound.Answer(w, http.StatusOK, document)
	}
}

func fails(err error) northbound.Handler {
	return func(http.ResponseWriter, *http.Request) error { return err }
}
