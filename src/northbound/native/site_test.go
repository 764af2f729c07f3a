package native_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/northbound/northboundtest"
)

// site is a server of the API over a stand-in, and a client that checks every
// answer against swagger.yaml.
type site struct {
	url    string
	client *http.Client
	log    *syncBuffer
}

const uploadLimit = 2 << 20

func serve(t *testing.T, s *standIn, edit ...func(*native.Config)) site {
	t.Helper()
	cfg := config(s)
	for _, f := range edit {
		f(&cfg)
	}
	api, err := native.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for e, err := range s.staged.List(context.Background(), "", "") {
			t.Errorf("%s is left of an upload: %v", e.Key, err)
		}
	})
	log := &syncBuffer{}
	handler, err := northbound.New(northbound.Config{
		Swagger: k8splugin.Swagger, APIs: []northbound.API{api}, UploadLimit: uploadLimit, Logger: logger(log),
	})
	if err != nil {
		t.Fatal(err)
	}
	site := serveHandler(t, handler)
	site.log = log
	return site
}

func config(s *standIn) native.Config {
	return native.Config{
		Regions: s, Packages: s, Usage: s, Instances: s, Inspector: s, History: s, Operations: s, Repairs: s,
		Conditions: s, Surveys: s, Parents: s, Healths: s, Audit: s, StoreAdmin: s, Configurer: s, Charts: s, DeadLetters: s, Inventory: s, Staging: s.stage, Version: "v1.2.3",
	}
}

func serveHandler(t *testing.T, handler http.Handler) site {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return site{url: server.URL, client: northboundtest.Client(t, k8splugin.Swagger)}
}

// answer is what a server said.
type answer struct {
	*http.Response

	body []byte
}

// ask sends a request. Header lines are "Name: value".
func (s site) ask(t *testing.T, request, body string, header ...string) answer {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	res, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, got}
}

// syncBuffer is a buffer that the server may write while the test reads.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
