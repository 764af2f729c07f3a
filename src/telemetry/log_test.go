package telemetry_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

type requestKey struct{}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// inside returns a context in which everything is known.
func inside(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, requestKey{}, "req-1")
	ctx = telemetry.WithOperation(ctx, "op-1")
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0xa, 15: 0xb}, SpanID: trace.SpanID{0xc, 7: 0xd},
	}))
}

const (
	traceText = "0a00000000000000000000000000000b"
	spanText  = "0c0000000000000d"
)

func TestCorrelated(t *testing.T) {
	all := "operation=op-1 request_id=req-1 trace_id=" + traceText + " span_id=" + spanText
	cases := map[string]struct {
		reason string
		ctx    func(context.Context) context.Context
		log    func(context.Context, *slog.Logger)
		want   string
	}{
		"Outside": {"what belongs to nothing bears nothing", func(ctx context.Context) context.Context { return ctx }, func(ctx context.Context, log *slog.Logger) {
			log.InfoContext(ctx, "m", "a", 1)
		}, "msg=m a=1"},
		"Operation": {"an operation without a trace has its id", func(ctx context.Context) context.Context { return telemetry.WithOperation(ctx, "op-1") }, func(ctx context.Context, log *slog.Logger) {
			log.InfoContext(ctx, "m")
		}, "msg=m operation=op-1"},
		"All": {"all that is known is said", inside, func(ctx context.Context, log *slog.Logger) {
			log.InfoContext(ctx, "m", "a", 1)
		}, "msg=m a=1 " + all},
		"Given": {"who logs an operation bears its id with or without us", inside, func(ctx context.Context, log *slog.Logger) {
			log.With("operation", "op-2").With("b", 2).InfoContext(ctx, "m")
		}, "msg=m operation=op-2 b=2 request_id=req-1 trace_id=" + traceText + " span_id=" + spanText},
		"GivenNow": {"and nothing is said twice", inside, func(ctx context.Context, log *slog.Logger) {
			log.InfoContext(ctx, "m", "request_id", "req-2", "operation", "op-2")
		}, "msg=m request_id=req-2 operation=op-2 trace_id=" + traceText + " span_id=" + spanText},
		"With": {"attributes that were given stay", inside, func(ctx context.Context, log *slog.Logger) {
			log.With("a", 1).With("b", 2).InfoContext(ctx, "m")
		}, "msg=m a=1 b=2 " + all},
		"Group": {"what is added stays outside of groups", inside, func(ctx context.Context, log *slog.Logger) {
			log.With("a", 1).WithGroup("g").With("b", 2).WithGroup("h").InfoContext(ctx, "m", "c", 3, "operation", "another's")
		}, "msg=m a=1 " + all + " g.b=2 g.h.c=3 g.h.operation=another's"},
		"GroupGiven": {"what was given before the group is not said again", inside, func(ctx context.Context, log *slog.Logger) {
			log.With("operation", "op-2", "request_id", "r", "trace_id", "t", "span_id", "s").WithGroup("g").InfoContext(ctx, "m", "c", 3)
		}, "msg=m operation=op-2 request_id=r trace_id=t span_id=s g.c=3"},
		"EmptyGroup": {"a group without a name is none", inside, func(ctx context.Context, log *slog.Logger) {
			log.WithGroup("").With().InfoContext(ctx, "m", "c", 3)
		}, "msg=m c=3 " + all},
		"Level": {"what is not wanted is not logged", inside, func(ctx context.Context, log *slog.Logger) {
			log.DebugContext(ctx, "m")
		}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tc.log(tc.ctx(t.Context()), slog.New(telemetry.Correlated(textHandler(&out), requestID)))
			if diff := cmp.Diff(tc.want, strings.TrimSuffix(out.String(), "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCorrelatedShares checks that loggers which come from one do not write into
// each other's attributes.
func TestCorrelatedShares(t *testing.T) {
	var out bytes.Buffer
	base := slog.New(telemetry.Correlated(textHandler(&out), nil)).With("a", 1, "b", 2, "c", 3).WithGroup("g").With("d", 4).With("e", 5)
	one, two := base.With("x", 1), base.With("operation", "two")
	one.InfoContext(inside(t.Context()), "m")
	two.InfoContext(t.Context(), "m")
	want := "msg=m a=1 b=2 c=3 operation=op-1 trace_id=" + traceText + " span_id=" + spanText + " g.d=4 g.e=5 g.x=1\nmsg=m a=1 b=2 c=3 g.d=4 g.e=5 g.operation=two\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// textHandler writes what matters here.
func textHandler(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}})
}

func BenchmarkLog(b *testing.B) {
	json := slog.NewJSONHandler(io.Discard, nil)
	for name, handler := range map[string]slog.Handler{
		"plain":      json,
		"correlated": telemetry.Correlated(json, requestID),
		"redacted":   telemetry.Redacted(json),
		"both":       telemetry.Correlated(telemetry.Redacted(json), requestID),
	} {
		b.Run(name, func(b *testing.B) {
			log, ctx := slog.New(handler), inside(b.Context())
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(ctx, slog.LevelInfo, "request", slog.String("method", "PATCH"), slog.String("route", "/v1/vnf_instances/{id}"),
					slog.String("path", "/v1/vnf_instances/0123456789abcdef"), slog.Int("status", 202), slog.Int64("bytes", 1234))
			}
		})
	}
}
