package telemetry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Config configures tracing. The zero value disables it.
type Config struct {
	Endpoint string               // OTLP collector over HTTP: host:port, or a URL; empty: no tracing
	Insecure bool                 // use HTTP for host:port, not HTTPS
	Headers  map[string]nf.Secret // sent with every export
	Sample   float64              // the share of traces that are kept, from 0 to 1, unless the client has decided
	Version  string               // of the service
	Instance string               // name of this replica; may be empty
	TLS      *tls.Config          // for the connection to the collector; default: the system's
	Logger   *slog.Logger         // default: discard
}

// Limits of tracing if the collector is slow or unreachable: spans beyond the
// queue are dropped.
const (
	queuedSpans   = 4096
	batchedSpans  = 512
	batchInterval = 5 * time.Second
	requestTime   = 10 * time.Second // of one export
	exportTime    = 30 * time.Second // of one batch, retries included
	flushTime     = 5 * time.Second  // of Shutdown
	longestValue  = 1024             // bytes of an attribute
	answerSize    = 64 << 10         // bytes of the collector's response
)

// Tracing creates the traces of the service: requests, the operations that they
// start, the operations' steps, and their requests to regions. It is safe for
// concurrent use.
type Tracing struct {
	tracer   trace.Tracer // nil: tracing is disabled
	provider *sdktrace.TracerProvider
	exporter sdktrace.SpanExporter
	client   *http.Client
}

// NewTracing returns tracing as configured. It does not connect: an unreachable
// collector is never an error.
func NewTracing(ctx context.Context, cfg Config) (*Tracing, error) {
	if cfg.Endpoint == "" {
		return &Tracing{}, nil
	}
	endpoint, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("cannot trace to %q: %w", cfg.Endpoint, err)
	}
	t := &Tracing{client: newClient(cfg.TLS)}
	exporter, err := otlptracehttp.New(ctx, cfg.options(endpoint, t.client)...)
	if err != nil {
		return nil, fmt.Errorf("cannot trace to %q: %w", cfg.Endpoint, err)
	}
	t.exporter = &quietExporter{SpanExporter: exporter, log: cfg.Logger}
	about := []attribute.KeyValue{attribute.String("service.name", "k8splugin"), attribute.String("service.version", cfg.Version)}
	if cfg.Instance != "" {
		about = append(about, attribute.String("service.instance.id", cfg.Instance))
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = longestValue
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithResource(resource.NewSchemaless(about...)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Sample))),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithBatcher(t.exporter,
			sdktrace.WithMaxQueueSize(queuedSpans), sdktrace.WithMaxExportBatchSize(batchedSpans),
			sdktrace.WithBatchTimeout(batchInterval), sdktrace.WithExportTimeout(exportTime)),
	)
	t.tracer = t.provider.Tracer("github.com/multicloud-k8s/k8splugin/src/telemetry")
	return t, nil
}

// complete checks the configuration and sets defaults. It returns the URL for
// spans.
func (c *Config) complete() (*url.URL, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Sample < 0 || c.Sample > 1 {
		return nil, fmt.Errorf("the sample ratio must be between 0 and 1, got %v", c.Sample)
	}
	text := c.Endpoint
	if !strings.Contains(text, "://") {
		scheme := "https://"
		if c.Insecure {
			scheme = "http://"
		}
		text = scheme + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it must be host:port or a URL") // the cause would quote the endpoint, which may contain a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("it must be host:port or an http or https URL")
	case u.Scheme == "https" && c.Insecure:
		return nil, errors.New("an https URL is not insecure")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it may only have a path in addition; put secrets into headers")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u, nil
}

// options sets every option that the environment would otherwise set, so that
// there is only one configuration.
func (c *Config) options(endpoint *url.URL, client *http.Client) []otlptracehttp.Option {
	headers := make(map[string]string, len(c.Headers))
	for name, value := range c.Headers {
		headers[name] = string(value)
	}
	return []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(endpoint.String()),
		otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithHTTPClient(client),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithMaxResponseSize(answerSize),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 10 * time.Second, MaxElapsedTime: exportTime,
		}),
	}
}

// newClient returns the client that sends spans. It follows no redirect, which
// would send the headers to another server.
func newClient(secure *tls.Config) *http.Client {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     secure,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     time.Minute,
		TLSHandshakeTimeout: requestTime,
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, Timeout: requestTime, CheckRedirect: stay}
}

// Shutdown sends the remaining spans, for at most 5 seconds or until the
// context ends, and stops. An error means that spans were lost.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if t.tracer == nil {
		return nil
	}
	defer t.client.CloseIdleConnections()
	limited, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	err := t.provider.Shutdown(limited)
	if err == nil {
		return nil
	}
	// The provider has stopped waiting; this cancels the export.
	cut := context.WithoutCancel(ctx)
	return fmt.Errorf("cannot send the last spans: %w", errors.Join(err, t.exporter.Shutdown(cut)))
}

// Traceparent returns the W3C traceparent of the context's span, for use by
// others that continue its trace, or "". Operations get it as nf.Options.Trace.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get(parentHeader)
}

const parentHeader = "traceparent"

// withParent returns a context that continues a trace, or starts one if the
// parent is missing or invalid.
func withParent(ctx context.Context, traceparent string) context.Context {
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{parentHeader: traceparent})
}
