package telemetry

import (
	"net/http"
	"slices"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Middleware creates a span for each request. If the client sends a
// traceparent, the span is a child of the client's. It must be the outermost
// handler, so that all log records have the trace. Route names the span. Paths
// that are polled, such as health checks, have no span.
func (t *Tracing) Middleware(next http.Handler) http.Handler {
	if t.tracer == nil {
		return next
	}
	return otelhttp.NewHandler(next, "",
		otelhttp.WithTracerProvider(t.provider),
		otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool { return !slices.Contains(unseen[:], r.URL.Path) }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return methodOf(r) }),
	)
}

var unseen = [...]string{"/healthz", "/readyz", "/metrics"}

// Route sets the matched path template in the request's span. The router calls
// it after matching. It does nothing for a request without a span.
func Route(r *http.Request, template string) {
	span := trace.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return
	}
	span.SetName(methodOf(r) + " " + template)
	span.SetAttributes(attribute.String("http.route", template))
}

// methodOf returns the request's method if it is a known one, so that a client
// cannot choose the span's name.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "HTTP"
}
