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
)

// Wrap returns a transport that makes a span of each request to a region's API
// server which is made on behalf of a traced operation or request. The span ends
// when the answer begins, and has the path, but neither query, headers nor
// bodies. A watch lasts for hours: it is an event of the span that it began in.
// The API server is not told of the trace.
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

// failureOf says why there was no answer. The error's own text has the query.
func failureOf(ctx context.Context) string {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case err != nil:
		return "abandoned"
	}
	return "connection"
}

// CloseIdleConnections lets http.Client reach the connections.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// WrappedRoundTripper lets Kubernetes' client reach the transport.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// path is what the path of a request to an API server says. The zero value is
// a path that names no resource.
type path struct {
	plain     string // of a path that names no resource
	version   string // "v1", "apps/v1"
	namespace string
	resource  string // "deployments"
	name      string
	sub       string // "status", "log"
	watch     bool   // in the old form, where the path says so
}

// readPath reads a path. What lies before the API, as with a proxy, is skipped.
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

// what is the path without names: "apps/v1/deployments/status".
func (p path) what() string {
	if p.plain != "" {
		return p.plain
	}
	if p.sub != "" {
		return p.version + "/" + p.resource + "/" + p.sub
	}
	return p.version + "/" + p.resource
}

// template is the path with placeholders for names.
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

// verbOf returns Kubernetes' word for what a request does.
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

// isTrue reports whether a query's parameter is set.
func isTrue(query, name string) bool {
	if !strings.Contains(query, name+"=") {
		return false // as nearly always: parsing costs
	}
	values, err := url.ParseQuery(query)
	return err == nil && (values.Get(name) == "true" || values.Get(name) == "1")
}
