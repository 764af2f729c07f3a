package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// broken is an exporter whose collector is away.
type broken struct{ err error }

func (b *broken) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return b.err }

func (*broken) Shutdown(context.Context) error { return nil }

func TestExporterIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		collector := &broken{err: errors.New("connection refused")}
		p := &quietExporter{SpanExporter: collector, log: slog.New(slog.NewTextHandler(&log, nil))}
		export := func() {
			t.Helper()
			if err := p.ExportSpans(t.Context(), nil); err != nil {
				t.Errorf("ExportSpans: %v, want no error: the SDK would print it", err)
			}
		}
		lines := func() []string { return strings.FieldsFunc(log.String(), func(r rune) bool { return r == '\n' }) }

		for range 100 {
			export()
		}
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "batches=1") || !strings.Contains(got[0], "connection refused") {
			t.Fatalf("the log says %q, want one line for the first failure", got)
		}
		<-time.After(complaintInterval - 1)
		export()
		if got := lines(); len(got) != 1 {
			t.Fatalf("the log says %q within the minute, want one line", got)
		}
		<-time.After(1)
		collector.err = errors.New(strings.Repeat("<html>", 1000))
		export()
		got := lines()
		if len(got) != 2 || !strings.Contains(got[1], "batches=101") {
			t.Fatalf("the log says %q, want a second line with the failures since the first", got)
		}
		if len(got[1]) > 2*longestComplaint {
			t.Errorf("the second line has %d bytes, want the collector's page cut", len(got[1]))
		}
		<-time.After(time.Hour)
		collector.err = nil
		export()
		if got := lines(); len(got) != 2 {
			t.Errorf("the log says %q, want nothing of what went well", got)
		}
	})
}

// stuck is an exporter that does not return until it is shut down.
type stuck struct {
	down chan struct{}
	once sync.Once
}

func (s *stuck) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	<-s.down
	return errors.New("shut down")
}

func (s *stuck) Shutdown(context.Context) error {
	s.once.Do(func() { close(s.down) }) // the provider does so, too
	return nil
}

// TestShutdownIsBounded leaves no goroutine in its bubble: one would fail it.
func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporter := &quietExporter{SpanExporter: &stuck{down: make(chan struct{})}, log: slog.New(slog.DiscardHandler)}
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
		tracing := &Tracing{provider: provider, tracer: provider.Tracer("test"), exporter: exporter, client: &http.Client{}}
		_, end := tracing.Operation(t.Context(), nf.Operation{ID: "op-1"})
		end(nf.Operation{}, nil)
		start := time.Now()
		if err := tracing.Shutdown(t.Context()); err == nil {
			t.Error("Shutdown returned no error, want that spans were lost")
		}
		if took := time.Since(start); took != flushTime {
			t.Errorf("Shutdown took %s, want %s: nobody waits longer for a collector", took, flushTime)
		}
	})
}
