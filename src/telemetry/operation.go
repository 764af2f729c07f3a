package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Operation begins the span of an operation that is being carried out, in the
// trace of the request that began it; one that is resumed adds a further span.
// What is logged with the context bears the operation's id, traced or not. The
// caller ends the span, once, with the operation as it is then and the error
// that stopped it, if any.
func (t *Tracing) Operation(ctx context.Context, op nf.Operation) (context.Context, func(nf.Operation, error)) {
	return t.operation(ctx, op, attribute.String("k8splugin.instance.id", op.Instance))
}

// SiteOperation is Operation, for one of a site. Its verb is the qualified one.
func (t *Tracing) SiteOperation(ctx context.Context, of nf.SiteOperation) (context.Context, func(nf.SiteOperation, error)) {
	ctx, end := t.operation(ctx, nf.Operation{
		ID: of.ID, Verb: of.Verb.Qualified(), Region: of.Region, Project: of.Project, Attempts: of.Attempts, Trace: of.Trace,
	}, attribute.String("k8splugin.site.id", of.Site))
	return ctx, func(of nf.SiteOperation, err error) { end(nf.Operation{State: of.State, Failure: of.Failure}, err) }
}

// operation begins the span of an operation on the subject. Of the operation
// that ends it, it reads the state and the failure.
func (t *Tracing) operation(ctx context.Context, op nf.Operation, subject attribute.KeyValue) (context.Context, func(nf.Operation, error)) {
	ctx = WithOperation(ctx, op.ID)
	if t.tracer == nil {
		return ctx, func(nf.Operation, error) {}
	}
	ctx, span := t.tracer.Start(withParent(ctx, op.Trace), "operation "+string(op.Verb), trace.WithAttributes(
		attribute.String("k8splugin.operation.id", op.ID),
		attribute.String("k8splugin.operation.verb", string(op.Verb)),
		attribute.Int("k8splugin.operation.attempt", max(op.Attempts, 1)),
		subject,
		attribute.String("k8splugin.region", op.Region),
		attribute.String("k8splugin.project", nf.ProjectOf(op.Project)),
	))
	return ctx, func(op nf.Operation, err error) {
		span.SetAttributes(attribute.String("k8splugin.operation.state", string(op.State)))
		if !op.State.Final() {
			err = nil // interrupted, to be resumed: it has not failed
		}
		if op.Failure != nil {
			span.SetAttributes(attribute.String("k8splugin.step", op.Failure.Step))
			err = &nf.Error{Kind: op.Failure.Kind, Reason: op.Failure.Reason}
		}
		end(span, err)
	}
}

// Step begins the span of a step of the context's operation. The caller ends it,
// once, with the step's error.
func (t *Tracing) Step(ctx context.Context, name string) (context.Context, func(error)) {
	if t.tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, stepName(name), trace.WithAttributes(attribute.String("k8splugin.step", name)))
	return ctx, func(err error) { end(span, err) }
}

// stepName is what all steps of a sort are called: "apply" for "apply 1/2 shop".
func stepName(name string) string {
	if i := strings.IndexAny(name, "0123456789"); i > 0 {
		name = name[:i]
	}
	return strings.TrimSpace(name)
}

// end ends a span. Of an error it tells the kind and the reason: its text may
// quote what a caller or an API server said.
func end(span trace.Span, err error) {
	defer span.End()
	if err == nil {
		return
	}
	kind, reason := nf.KindOf(err).String(), nf.ReasonOf(err)
	span.SetAttributes(attribute.String("error.type", kind))
	if kind == nf.Cancelled.String() {
		return // as somebody wished
	}
	if reason != "" {
		kind += ": " + reason
	}
	span.SetStatus(codes.Error, kind)
}
