package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// complaintInterval is the minimum time between two log lines about failed
// exports.
const complaintInterval = time.Minute

// longestComplaint limits the logged error, in bytes: a collector may respond
// with a whole page.
const longestComplaint = 512

// quietExporter is an exporter that never fails. It logs failures, at most once a
// minute. Without it the SDK would print them to standard error.
type quietExporter struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu    sync.Mutex
	last  time.Time // time of the last log line
	since int       // failures since then
}

// ExportSpans implements sdktrace.SpanExporter. It always returns nil.
func (p *quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := p.SpanExporter.ExportSpans(ctx, spans); err != nil {
		p.logFailure(ctx, err)
	}
	return nil
}

func (p *quietExporter) logFailure(ctx context.Context, err error) {
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
	p.log.WarnContext(ctx, "failed to export spans; the spans are lost", "batches", failures, "error", nf.Clip(err.Error(), longestComplaint))
}
