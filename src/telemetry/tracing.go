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

// Config says where traces go. The zero value traces nothing.
type Config struct {
	Endpoint string               // of an OTLP collector that speaks HTTP: host:port, or a URL; empty: nothing is traced
	Insecure bool                 // speak HTTP to host:port, not HTTPS
	Headers  map[string]nf.Secret // sent with every export
	Sample   float64              // the share of traces that are kept, from 0 to 1, where the caller has not decided
	Version  string               // of the service
	Instance string               // names this replica; may be empty
	TLS      *tls.Config          // trust in the collector; default the system's
	Logger   *slog.Logger         // default: discard
}

// What tracing may cost when the collector is slow or away: spans beyond the
// queue are dropped.
const (
	queuedSpans   = 4096
	batchedSpans  = 512
	batchInterval = 5 * time.Second
	requestTime   = 10 * time.Second // of one export
	exportTime    = 30 * time.Second // of one batch, retries included
	flushTime     = 5 * time.Second  // of Shutdown
	longestValue  = 1024             // bytes of an attribute
	answerSize    = 64 << 10         // bytes that the collector may answer
)

// Tracing makes the traces of the service: requests, the operations that they
// begin, the operations' steps, and the requests to regions that these make. It
// is safe for concurrent use.
type Tracing struct {
	tracer   trace.Tracer // nil: nothing is traced
	provider *sdktrace.TracerProvider
	exporter sdktrace.SpanExporter
	client   *http.Client
}

// NewTracing returns tracing as configured. It does not dial: a collector that
// is away is no failure, now or later.
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
	t.exporter = &patient{SpanExporter: exporter, log: cfg.Logger}
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

// complete checks the configuration and fills it in. It returns where spans are
// sent to.
func (c *Config) complete() (*url.URL, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Sample < 0 || c.Sample > 1 {
		return nil, fmt.Errorf("the sample, %v, is not between 0 and 1", c.Sample)
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
		return nil, errors.New("it is neither host:port nor a URL") // the cause repeats it, with a password that it may have
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("it is neither host:port nor an http or https URL")
	case u.Scheme == "https" && c.Insecure:
		return nil, errors.New("an https URL is not insecure")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it may have a path, and nothing else: secrets belong into headers")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u, nil
}

// options are explicit where the environment would decide otherwise: a
// process's configuration has one owner.
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

// newClient returns the client that spans are sent with. It follows no redirect,
// which would carry the headers to somebody else.
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

// Shutdown sends what has not been sent yet, within a few seconds or until the
// context ends, and stops. Its error says that spans were lost.
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
	// The provider has stopped waiting; this cuts off the export it waited for.
	cut := context.WithoutCancel(ctx)
	return fmt.Errorf("cannot send the last spans: %w", errors.Join(err, t.exporter.Shutdown(cut)))
}

// Traceparent returns the W3C traceparent of the context's span, by which others
// continue its trace, or "". Operations are given it as nf.Options.Trace.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get(parentHeader)
}

const parentHeader = "traceparent"

// withParent returns a context that continues a trace, or begins one when there
// is no such parent.
func withParent(ctx context.Context, traceparent string) context.Context {
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{parentHeader: traceparent})
}
