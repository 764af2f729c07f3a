// Package sol013test is the test kit of the APIs of ETSI: a server of one API, and a client
// that sends the version of each path and validates every response against swagger.yaml.
package sol013test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

// Server serves an API until the test ends.
type Server struct {
	t      testing.TB
	client *http.Client
	url    string
}

// New returns a server of an API, whose responses match an OpenAPI document.
func New(t testing.TB, swagger []byte, api northbound.API) *Server {
	t.Helper()
	handler, err := northbound.New(northbound.Config{Swagger: swagger, APIs: []northbound.API{api}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sol013.Formats(handler))
	t.Cleanup(server.Close)
	return &Server{t, northboundtest.Client(t, swagger), server.URL}
}

// Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Ask sends a request with the version of its path, and with other headers: name, value,
// …. A header without a value is not sent.
func (s *Server) Ask(method, path, body string, headers ...string) Answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Version", sol013.VersionOf(r.URL.Path))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return Answer{resp.StatusCode, resp.Header, string(content)}
}
