package telemetry

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Wrap returns a transport that creates a span for each request to a region's
// API server that belongs to a traced operation or request. The span ends when
// the response begins. It has the path, but not the query, headers or bodies. A
// watch lasts for hours, so it is an event of the current span. The trace is
// not propagated to the API server.
func (t *Tracing) Wrap(region string, next http.RoundTripper) http.RoundTripper {
	if t.tracer == nil {
		return next
	}
	return &transport{next: next, tracer: t.tracer, region: region}
}

type transport struct {
	next   http.RoundTripper
	tracer trace.Tracer
	region string
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	parent := trace.SpanFromContext(r.Context())
	if !parent.IsRecording() {
		return t.next.RoundTrip(r)
	}
	p := readPath(r.URL.Path)
	verb := verbOf(r, p)
	about := []attribute.KeyValue{
		attribute.String("k8splugin.region", t.region),
		attribute.String("k8s.request.verb", verb),
		attribute.String("http.request.method", methodOf(r)),
		attribute.String("url.path", r.URL.Path),
		attribute.String("url.template", p.template()),
	}
	if verb == "watch" || isTrue(r.URL.RawQuery, "follow") {
		parent.AddEvent(verb+" "+p.what(), trace.WithAttributes(about...))
		return t.next.RoundTrip(r)
	}
	_, span := t.tracer.Start(r.Context(), verb+" "+p.what(), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(about...))
	defer span.End()
	answer, err := t.next.RoundTrip(r)
	switch {
	case err != nil:
		word := failureOf(r.Context())
		span.SetAttributes(attribute.String("error.type", word))
		span.SetStatus(codes.Error, word)
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", answer.StatusCode))
		if answer.StatusCode >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(answer.StatusCode))
		}
	}
	return answer, err
}

// failureOf returns why there was no response. The error itself contains the
// query.
func failureOf(ctx context.Context) string {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return nf.ReasonTimeout
	case err != nil:
		return "abandoned"
	}
	return "connection"
}

// CloseIdleConnections closes the idle connections of the wrapped transport.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// WrappedRoundTripper returns the wrapped transport, for Kubernetes' client.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// path is the parsed path of a request to an API server. The zero value is a
// path without a resource.
type path struct {
	plain     string // a path without a resource
	version   string // "v1", "apps/v1"
	namespace string
	resource  string // "deployments"
	name      string
	sub       string // "status", "log"
	watch     bool   // in the old form, with "watch" in the path
}

// readPath parses a path. It skips a prefix before the API, as a proxy has it.
func readPath(text string) path {
	segments := strings.FieldsFunc(text, func(r rune) bool { return r == '/' })
	for i, s := range segments {
		rest := segments[i+1:]
		switch {
		case s == "api" && len(rest) >= 2:
			return readResource(path{version: rest[0]}, rest[1:])
		case s == "apis" && len(rest) >= 3:
			return readResource(path{version: rest[0] + "/" + rest[1]}, rest[2:])
		case s == "api" || s == "apis" || s == "openapi":
			return path{plain: "/" + s}
		}
	}
	switch text {
	case "/version", "/healthz", "/readyz", "/livez":
		return path{plain: text}
	}
	return path{plain: "/"}
}

func readResource(p path, segments []string) path {
	if segments[0] == "watch" && len(segments) > 1 {
		p.watch, segments = true, segments[1:]
	}
	if segments[0] == "namespaces" && len(segments) > 2 && segments[2] != "status" && segments[2] != "finalize" {
		p.namespace, segments = segments[1], segments[2:]
	}
	p.resource = segments[0]
	if len(segments) > 1 {
		p.name = segments[1]
	}
	if len(segments) > 2 {
		p.sub = segments[2]
	}
	return p
}

// what returns the path without names: "apps/v1/deployments/status".
func (p path) what() string {
	if p.plain != "" {
		return p.plain
	}
	if p.sub != "" {
		return p.version + "/" + p.resource + "/" + p.sub
	}
	return p.version + "/" + p.resource
}

// template returns the path with placeholders for names.
func (p path) template() string {
	if p.plain != "" {
		return p.plain
	}
	root := "/apis/"
	if !strings.Contains(p.version, "/") {
		root = "/api/"
	}
	out := root + p.version
	if p.namespace != "" {
		out += "/namespaces/{namespace}"
	}
	out += "/" + p.resource
	if p.name != "" {
		out += "/{name}"
	}
	if p.sub != "" {
		out += "/" + p.sub
	}
	return out
}

// verbOf returns the Kubernetes verb of a request.
func verbOf(r *http.Request, p path) string {
	named := p.name != "" || p.plain != ""
	switch r.Method {
	case http.MethodGet:
		switch {
		case p.watch || isTrue(r.URL.RawQuery, "watch"):
			return "watch"
		case named:
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return "other"
}

// isTrue reports whether a parameter of the query is true.
func isTrue(query, name string) bool {
	if !strings.Contains(query, name+"=") {
		return false // the usual case: parsing is expensive
	}
	values, err := url.ParseQuery(query)
	return err == nil && (values.Get(name) == "true" || values.Get(name) == "1")
}
