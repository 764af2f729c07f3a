package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Operation starts the span of an operation, in the trace of the request that
// started it. A resumed operation gets a further span. Log records with the
// context contain the operation's id, even without tracing. The caller must
// call the returned function once, with the current operation and the error
// that stopped it, if any.
func (t *Tracing) Operation(ctx context.Context, op nf.Operation) (context.Context, func(nf.Operation, error)) {
	ctx = WithOperation(ctx, op.ID)
	if t.tracer == nil {
		return ctx, func(nf.Operation, error) {}
	}
	ctx, span := t.tracer.Start(withParent(ctx, op.Trace), "operation "+string(op.QualifiedVerb()), trace.WithAttributes(
		attribute.String("k8splugin.operation.id", op.ID),
		attribute.String("k8splugin.operation.verb", string(op.QualifiedVerb())),
		attribute.Int("k8splugin.operation.attempt", max(op.Attempts, 1)),
		attribute.String("k8splugin."+op.Subject.Kind.Key()+".id", op.Subject.ID),
		attribute.String("k8splugin.region", op.Region),
		attribute.String("k8splugin.project", nf.ProjectOf(op.Project)),
	))
	return ctx, func(op nf.Operation, err error) {
		span.SetAttributes(attribute.String("k8splugin.operation.state", string(op.State)))
		if !op.State.Final() {
			err = nil // interrupted, and will be resumed: not a failure
		}
		if op.Failure != nil {
			span.SetAttributes(attribute.String("k8splugin.step", op.Failure.Step))
			err = &nf.Error{Kind: op.Failure.Kind, Reason: op.Failure.Reason}
		}
		end(span, err)
	}
}

// Step starts the span of a step of the context's operation. Steps of one phase
// have one name, with a prefix if they undo. The caller ends the span once, with
// the step's error.
func (t *Tracing) Step(ctx context.Context, step nf.Step) (context.Context, func(error)) {
	if t.tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, func(error) {}
	}
	name := string(step.Phase)
	if step.Undo {
		name = "undo: " + name
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attribute.String("k8splugin.step", step.Title())))
	return ctx, func(err error) { end(span, err) }
}

// end ends a span. It records only the kind and the reason of an error, because
// the text may quote a caller or an API server.
func end(span trace.Span, err error) {
	defer span.End()
	if err == nil {
		return
	}
	kind, reason := nf.KindOf(err).String(), nf.ReasonOf(err)
	span.SetAttributes(attribute.String("error.type", kind))
	if kind == nf.Cancelled.String() {
		return // on request, so not a failure
	}
	if reason != "" {
		kind += ": " + reason
	}
	span.SetStatus(codes.Error, kind)
}
