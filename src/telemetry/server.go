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

// Middleware makes a span of each request, as the child of the caller's when he
// sends a traceparent. It goes around everything, so that all that is logged
// has the trace; Route names the span. What machines ask every few seconds has
// no span.
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

// Route tells the request's span which path template was matched; the router
// calls it once it knows. A request without a span is let alone.
func Route(r *http.Request, template string) {
	span := trace.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return
	}
	span.SetName(methodOf(r) + " " + template)
	span.SetAttributes(attribute.String("http.route", template))
}

// methodOf returns the request's method if it is a known one: a span's name must
// not be a client's to choose.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "HTTP"
}
