package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// receiver is a collector: it keeps every byte that it is sent.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	bodies  [][]byte
	headers []http.Header
	paths   []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP takes spans.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	unzipped, err := gzip.NewReader(req.Body)
	if err != nil {
		http.Error(w, "not gzip", http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(unzipped)
	if err != nil {
		http.Error(w, "not gzip", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies, r.headers, r.paths = append(r.bodies, body), append(r.headers, req.Header), append(r.paths, req.URL.Path)
}

// bytes returns all that was sent, headers included.
func (r *receiver) bytes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out bytes.Buffer
	for i := range r.bodies {
		out.Write(r.bodies[i])
		_ = r.headers[i].Write(&out) // a buffer never fails
	}
	return out.String()
}

// span is an exported span with the tree below it.
type span struct {
	*otlp.Span

	attributes map[string]string
	children   []*span
}

// spans returns the exported spans by name, and those of an operation by name
// and attempt.
func (r *receiver) spans(t *testing.T) map[string]*span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	out, byID := map[string]*span{}, map[string]*span{}
	for _, body := range r.bodies {
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Fatal(err)
		}
		for _, s := range flat(&request) {
			if n := s.attributes["k8splugin.operation.attempt"]; n != "" {
				s.Name += "#" + n
			}
			if out[s.GetName()] != nil {
				t.Fatalf("two spans are called %q", s.GetName())
			}
			out[s.GetName()], byID[string(s.GetSpanId())] = s, s
		}
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if parent := byID[string(out[name].GetParentSpanId())]; parent != nil {
			parent.children = append(parent.children, out[name])
		}
	}
	return out
}

func flat(request *collector.ExportTraceServiceRequest) []*span {
	var out []*span
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				out = append(out, &span{Span: s, attributes: texts(s)})
			}
		}
	}
	return out
}

func texts(s *otlp.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.GetAttributes() {
		out[a.GetKey()] = strings.Trim(strings.SplitN(a.GetValue().String(), ":", 2)[1], `"`)
	}
	return out
}

// tree writes a span and those below it, each with its status if it failed.
func (s *span) tree(indent string) string {
	out := indent + s.GetName()
	if s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR {
		out += " !" + s.GetStatus().GetMessage()
	}
	for _, e := range s.GetEvents() {
		out += " *" + e.GetName()
	}
	out += "\n"
	for _, c := range s.children {
		out += c.tree(indent + "  ")
	}
	return out
}

// traceTo returns tracing to a receiver.
func traceTo(t *testing.T, r *receiver) *telemetry.Tracing {
	t.Helper()
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Config{Endpoint: r.URL, Sample: 1, Version: "v1.2.3", Instance: "replica-a"})
	if err != nil {
		t.Fatal(err)
	}
	return tracing
}

// flush sends what there is. Nothing can be traced any more.
func flush(t *testing.T, tracing *telemetry.Tracing) {
	t.Helper()
	if err := tracing.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}
