package northbound_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

func TestBodyLimits(t *testing.T) {
	t.Parallel()
	read := func(_ http.ResponseWriter, r *http.Request) error {
		_, err := northbound.Decode[map[string]any](r)
		return err
	}
	upload := func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(io.Discard, r.Body)
		return err
	}
	server := httptest.NewServer(handler(t, northbound.Config{UploadLimit: 100, APIs: []northbound.API{routes{
		"POST /v1/vnf_instances": read, "POST /v1/packages": upload,
	}}}))
	defer server.Close()
	client := northboundtest.Client(t, k8splugin.Swagger)
	chunked := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }
	cases := map[string]struct {
		reason string
		path   string
		body   io.Reader
		status int
	}{
		"Document":        {"a document has 1 MiB at most", "/v1/vnf_instances", strings.NewReader(strings.Repeat(" ", northbound.MaxDocument+1)), 413},
		"DocumentChunked": {"whether it says so or not", "/v1/vnf_instances", chunked(strings.Repeat(" ", northbound.MaxDocument+1)), 413},
		"DocumentFits":    {"up to there it is read", "/v1/vnf_instances", chunked(strings.Repeat(" ", northbound.MaxDocument)), 400},
		"Upload":          {"an upload has its own limit", "/v1/packages", strings.NewReader(strings.Repeat("x", 101)), 413},
		"UploadChunked":   {"whether it says so or not", "/v1/packages", chunked(strings.Repeat("x", 101)), 413},
		"UploadFits":      {"up to there it is read", "/v1/packages", chunked(strings.Repeat("x", 100)), 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			post := client
			if c.status == 0 {
				post, c.status = http.DefaultClient, http.StatusOK // the handler's answer is none of the contract's
			}
			res, err := post.Post(server.URL+c.path, "", c.body)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != c.status {
				t.Errorf("%s: the answer is %s, want %d", c.reason, res.Status, c.status)
			}
		})
	}
}

// TestBodyCutOff has a client that promises more than it sends.
func TestBodyCutOff(t *testing.T) {
	t.Parallel()
	result := make(chan error, 1)
	server := httptest.NewServer(handler(t, northbound.Config{APIs: []northbound.API{routes{
		"POST /v1/packages": func(_ http.ResponseWriter, r *http.Request) error {
			_, err := io.Copy(io.Discard, r.Body)
			result <- err
			return err
		},
	}}}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "POST /v1/packages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; nf.KindOf(err) != nf.Invalid {
		t.Errorf("half a body is %v, want the client's fault", err)
	}
}
