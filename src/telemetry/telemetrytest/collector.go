// Package telemetrytest is an OpenTelemetry collector for tests: it keeps the
// traces that it receives, and shows their spans as trees.
//
// It supports OTLP over HTTP as far as this service uses it, but not gRPC. It
// does not support metrics and logs.
package telemetrytest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector keeps every request body that it receives.
type Collector struct {
	URL string // the endpoint

	mu      sync.Mutex
	exports []Export
}

// Export is a request of an exporter.
type Export struct {
	Path   string
	Header http.Header
	Body   []byte // unzipped
}

// New returns a collector that serves until the test ends.
func New(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	var body []byte
	unzipped, err := gzip.NewReader(r.Body)
	if err == nil {
		body, err = io.ReadAll(unzipped)
	}
	if err != nil {
		http.Error(w, "not gzip", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exports = append(c.exports, Export{r.URL.Path, r.Header, body})
}

// Exports returns the requests received.
func (c *Collector) Exports() []Export {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.exports)
}

// Sent returns all data received, including headers, for a search.
func (c *Collector) Sent() string {
	var out bytes.Buffer
	for _, e := range c.Exports() {
		out.Write(e.Body)
		_ = e.Header.Write(&out) // a buffer never fails
	}
	return out.String()
}

// Span is a span with its children.
type Span struct {
	*otlp.Span

	Attributes map[string]string
	Children   []*Span // in the order of their start
}

// Spans returns the spans received, in the order of their start. The name of an
// operation's span includes its attempt: "operation upgrade#1".
func (c *Collector) Spans(t *testing.T) []*Span {
	t.Helper()
	var all []*Span
	byID := map[string]*Span{}
	for _, e := range c.Exports() {
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(e.Body, &request); err != nil {
			t.Fatalf("the request does not contain spans: %v", err)
		}
		for _, s := range flat(&request) {
			if n := s.Attributes["k8splugin.operation.attempt"]; n != "" {
				s.Name += "#" + n
			}
			all, byID[string(s.GetSpanId())] = append(all, s), s
		}
	}
	slices.SortStableFunc(all, func(a, b *Span) int { return cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano()) })
	for _, s := range all {
		if parent := byID[string(s.GetParentSpanId())]; parent != nil {
			parent.Children = append(parent.Children, s)
		}
	}
	return all
}

func flat(request *collector.ExportTraceServiceRequest) []*Span {
	var out []*Span
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				out = append(out, &Span{Span: s, Attributes: texts(s)})
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

// Tree returns a span and its descendants, one per line: the name, "!" and the
// status if it failed, and "*" and the name of each event.
func (s *Span) Tree() string {
	var out strings.Builder
	s.write(&out, "")
	return out.String()
}

func (s *Span) write(out *strings.Builder, indent string) {
	out.WriteString(indent + s.GetName())
	if s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR {
		out.WriteString(" !" + s.GetStatus().GetMessage())
	}
	for _, e := range s.GetEvents() {
		out.WriteString(" *" + e.GetName())
	}
	out.WriteString("\n")
	for _, c := range s.Children {
		c.write(out, indent+"  ")
	}
}
