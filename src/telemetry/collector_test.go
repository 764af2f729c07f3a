package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
	"github.com/multicloud-k8s/k8splugin/src/telemetry/telemetrytest"
)

func TestWithoutEndpoint(t *testing.T) {
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Config{Sample: 7})
	if err != nil {
		t.Fatalf("NewTracing: %v, want no error: what is not used is not wrong", err)
	}
	handler := http.NewServeMux()
	if tracing.Middleware(handler) != http.Handler(handler) {
		t.Error("Middleware stands before the handler, want the handler itself: it would cost")
	}
	api := http.DefaultTransport
	if tracing.Wrap("east", api) != api {
		t.Error("Wrap stands before the transport, want the transport itself")
	}
	ctx, end := tracing.Operation(t.Context(), nf.Operation{ID: "op-1", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if got := telemetry.Traceparent(ctx); got != "" {
		t.Errorf("the traceparent is %q, want none", got)
	}
	var log bytes.Buffer
	slog.New(telemetry.Correlated(slog.NewTextHandler(&log, nil), nil)).InfoContext(ctx, "hello")
	if !strings.Contains(log.String(), "operation=op-1") {
		t.Errorf("the log says %q, want the operation: it does not depend on tracing", log.String())
	}
	step, endStep := tracing.Step(ctx, nf.Step{StepID: nf.StepID{Phase: nf.PhaseApply}})
	if step != ctx {
		t.Error("Step made a context for nothing")
	}
	endStep(errors.New("x"))
	end(nf.Operation{}, nil)
	if err := tracing.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v, want nothing to be done", err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = tracing.Step(ctx, nf.Step{StepID: nf.StepID{Phase: nf.PhaseApply}}) }); n > 0 {
		t.Errorf("a step costs %v allocations, want none", n)
	}
}

// TestSample checks that a caller's trace is continued even if no operation is
// sampled.
func TestSample(t *testing.T) {
	collector := telemetrytest.New(t)
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Config{Endpoint: collector.URL, Sample: 0})
	if err != nil {
		t.Fatal(err)
	}
	for verb, parent := range map[nf.Verb]string{
		nf.Upgrade: "", nf.Terminate: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", nf.Rollback: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
	} {
		_, end := tracing.Operation(t.Context(), nf.Operation{Verb: verb, Trace: parent})
		end(nf.Operation{}, nil)
	}
	flush(t, tracing)
	if spans := named(t, collector); len(spans) != 1 || spans["operation terminate#1"] == nil {
		t.Errorf("the spans are %v, want the one whose caller keeps his trace", spans)
	}
}

func TestNewTracingRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		cfg    telemetry.Config
		want   string
	}{
		"Scheme":    {"OTLP over HTTP is what is spoken", telemetry.Config{Endpoint: "grpc://collector:4317"}, "must be host:port or"},
		"NoHost":    {"somebody must be there", telemetry.Config{Endpoint: "http://:4318"}, "must be host:port or"},
		"Text":      {"a text is no address", telemetry.Config{Endpoint: "the collector"}, "must be host:port or"},
		"Contrary":  {"HTTPS is not insecure", telemetry.Config{Endpoint: "https://collector", Insecure: true}, "is not insecure"},
		"Query":     {"what is no path is a mistake", telemetry.Config{Endpoint: "https://collector/?a=b"}, "may only have a path"},
		"TooMuch":   {"nothing is more than all", telemetry.Config{Endpoint: "collector:4318", Sample: 1.5}, "between 0 and 1"},
		"TooLittle": {"nor less than none", telemetry.Config{Endpoint: "collector:4318", Sample: -1}, "between 0 and 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := telemetry.NewTracing(t.Context(), tc.cfg)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: the error is %v, want one that says %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestEndpoints(t *testing.T) {
	collector := telemetrytest.New(t)
	host := strings.TrimPrefix(collector.URL, "http://")
	cases := map[string]struct {
		reason string
		cfg    telemetry.Config
		path   string
	}{
		"Address": {"a host and port have the usual path", telemetry.Config{Endpoint: host, Insecure: true}, "/v1/traces"},
		"URL":     {"so has a URL without one", telemetry.Config{Endpoint: collector.URL + "/"}, "/v1/traces"},
		"Path":    {"a path is taken as it is", telemetry.Config{Endpoint: collector.URL + "/otlp/traces"}, "/otlp/traces"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://192.0.2.1:1")
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-from=environment")
			t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
			tc.cfg.Sample = 1
			tc.cfg.Headers = map[string]nf.Secret{"X-Key": nf.Secret("to the collector")}
			tracing, err := telemetry.NewTracing(t.Context(), tc.cfg)
			if err != nil {
				t.Fatal(err)
			}
			_, end := tracing.Operation(t.Context(), nf.Operation{ID: "op-1"})
			end(nf.Operation{}, nil)
			flush(t, tracing)
			exports := collector.Exports()
			n := len(exports)
			if n == 0 || exports[n-1].Path != tc.path {
				t.Fatalf("%s: there were %d exports, want the last to be to %q", tc.reason, n, tc.path)
			}
			if h := exports[n-1].Header; h.Get("X-Key") != "to the collector" || h.Get("X-From") != "" {
				t.Errorf("%s: the headers are %v, want those of the configuration alone", tc.reason, h)
			}
		})
	}
}

// TestShutdownGivesUp has a collector that takes spans and never answers.
func TestShutdownGivesUp(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done() // the client has left
	}))
	defer server.Close()
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Config{Endpoint: server.URL, Sample: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, end := tracing.Operation(t.Context(), nf.Operation{ID: "op-1"})
	end(nf.Operation{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- tracing.Shutdown(ctx) }()
	<-asked
	cancel()
	if err := <-ended; err == nil {
		t.Error("Shutdown returned no error, want that spans were lost")
	}
}

func TestShutdownLeavesNothing(t *testing.T) {
	collector := telemetrytest.New(t)
	before := goleak.IgnoreCurrent()
	tracing := traceTo(t, collector)
	_, end := tracing.Operation(t.Context(), nf.Operation{ID: "op-1"})
	end(nf.Operation{}, nil)
	flush(t, tracing)
	goleak.VerifyNone(t, before) // no connection either: the collector still serves
	if len(named(t, collector)) != 1 {
		t.Error("the last span was not sent")
	}
}

// TestRedirect has a collector that sends us elsewhere: what authenticates us is
// not for others.
func TestRedirect(t *testing.T) {
	elsewhere := telemetrytest.New(t)
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	var log bytes.Buffer
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Config{
		Endpoint: server.URL, Sample: 1, Headers: map[string]nf.Secret{"X-Key": nf.Secret(clusters)}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, end := tracing.Operation(t.Context(), nf.Operation{ID: "op-1"})
	end(nf.Operation{}, nil)
	flush(t, tracing)
	if sent := elsewhere.Sent(); sent != "" {
		t.Errorf("somebody else was sent %q", sent)
	}
	if !strings.Contains(log.String(), "failed to export spans") || strings.Contains(log.String(), clusters) {
		t.Errorf("the log says %q, want the failure without the key", log.String())
	}
}
