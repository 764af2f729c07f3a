package telemetry

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

type operationKey struct{}

// WithOperation returns a context whose log records contain the id of an
// operation.
func WithOperation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, operationKey{}, id)
}

// Correlated returns a handler that adds attributes of the context to each
// record: operation, request_id, trace_id and span_id. It adds only those that
// the record does not have, and at the top level even in a group. RequestID may
// be nil.
func Correlated(next slog.Handler, requestID func(context.Context) string) slog.Handler {
	if requestID == nil {
		requestID = func(context.Context) string { return "" }
	}
	return &correlated{next: next, requestID: requestID}
}

// correlated passes attributes on to next until a group is opened. From then on
// it keeps them, so that the added attributes stay out of the group.
type correlated struct {
	next      slog.Handler
	requestID func(context.Context) string
	said      []string // keys that are not added, because the log has them
	kept      []func(slog.Handler) slog.Handler
}

// The keys that are added.
const (
	keyOperation = "operation"
	keyRequest   = "request_id"
	keyTrace     = "trace_id"
	keySpan      = "span_id"
)

// Enabled implements slog.Handler.
func (h *correlated) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *correlated) Handle(ctx context.Context, record slog.Record) error {
	var room [4]slog.Attr
	added := h.context(ctx, record, room[:0])
	if len(h.kept) == 0 {
		if len(added) > 0 {
			record = record.Clone()
			record.AddAttrs(added...)
		}
		return h.next.Handle(ctx, record)
	}
	next := h.next
	if len(added) > 0 {
		next = next.WithAttrs(slices.Clone(added))
	}
	for _, apply := range h.kept {
		next = apply(next)
	}
	return next.Handle(ctx, record)
}

// context appends the attributes of the context that the record does not have.
func (h *correlated) context(ctx context.Context, record slog.Record, out []slog.Attr) []slog.Attr {
	if id, ok := ctx.Value(operationKey{}).(string); ok {
		out = append(out, slog.String(keyOperation, id))
	}
	if id := h.requestID(ctx); id != "" {
		out = append(out, slog.String(keyRequest, id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		out = append(out, slog.String(keyTrace, span.TraceID().String()), slog.String(keySpan, span.SpanID().String()))
	}
	if len(out) == 0 {
		return out
	}
	out = slices.DeleteFunc(out, func(a slog.Attr) bool { return slices.Contains(h.said, a.Key) })
	if len(h.kept) > 0 {
		return out // the record's own attributes are in a group
	}
	record.Attrs(func(given slog.Attr) bool {
		out = slices.DeleteFunc(out, func(a slog.Attr) bool { return a.Key == given.Key })
		return len(out) > 0
	})
	return out
}

// WithAttrs implements slog.Handler.
func (h *correlated) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	if len(h.kept) > 0 {
		return h.keep(func(next slog.Handler) slog.Handler { return next.WithAttrs(attrs) })
	}
	c := *h
	c.next = h.next.WithAttrs(attrs)
	c.said = slices.Clone(h.said)
	for _, a := range attrs {
		c.said = append(c.said, a.Key)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *correlated) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.keep(func(next slog.Handler) slog.Handler { return next.WithGroup(name) })
}

func (h *correlated) keep(apply func(slog.Handler) slog.Handler) slog.Handler {
	c := *h
	c.kept = append(slices.Clone(h.kept), apply)
	return &c
}
