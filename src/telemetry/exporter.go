package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// complaintInterval is how long the log is left alone after it was told that
// spans cannot be exported.
const complaintInterval = time.Minute

// longestComplaint is how much of an error is logged: a collector may answer
// with a page.
const longestComplaint = 512

// patient is an exporter whose failures go no further than the log, and there
// once a minute. Without it the SDK would print them to standard error.
type patient struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu    sync.Mutex
	last  time.Time // when the log was last told
	since int       // failures since then
}

// ExportSpans implements sdktrace.SpanExporter. It does not fail.
func (p *patient) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := p.SpanExporter.ExportSpans(ctx, spans); err != nil {
		p.complain(ctx, err)
	}
	return nil
}

func (p *patient) complain(ctx context.Context, err error) {
	p.mu.Lock()
	p.since++
	failures, now := p.since, time.Now()
	due := p.last.IsZero() || now.Sub(p.last) >= complaintInterval
	if due {
		p.last, p.since = now, 0
	}
	p.mu.Unlock()
	if !due {
		return
	}
	text := err.Error()
	if len(text) > longestComplaint {
		text = text[:longestComplaint] + "…"
	}
	p.log.WarnContext(ctx, "spans could not be exported, and are lost", "batches", failures, "error", text)
}
