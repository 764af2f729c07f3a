package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

const (
	podsQuoted  = 5                // quoted in the error of an operation that timed out
	explainTime = 10 * time.Second // limit for the reads that explain why an object is not ready
)

// withTimeout is context.WithTimeout with the cause operation.Expired. Without a timeout
// it returns the context unchanged.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, &operation.Expired{Limit: timeout})
}

// waitTimeout is the cause of a Timeout error. It has the limit that passed, and
// the objects that were waited for. Its violations can be found in the error chain.
type waitTimeout struct {
	cause     error
	waited    nf.Violations
	unready   []nf.Ref // objects that did not become ready
	explained bool     // their pods were queried
}

func (o *waitTimeout) Error() string { return o.cause.Error() + ": " + o.waited.Error() }

func (o *waitTimeout) Unwrap() error { return o.waited }

// rewritten returns the error with its violations replaced.
func rewritten(err error, v nf.Violations) error {
	out := &nf.Error{Kind: nf.KindOf(err), Op: "apply", Subject: "the package", Reason: nf.ReasonOf(err), Operation: nf.OperationOf(err), Err: v}
	if timeout, ok := errors.AsType[*waitTimeout](err); ok {
		if was, ok := errors.AsType[*nf.Error](err); ok {
			out.Op, out.Subject = was.Op, was.Subject
		}
		out.Err = &waitTimeout{cause: timeout.cause, waited: v, unready: timeout.unready, explained: timeout.explained}
	}
	return out
}

// overdue returns the error of a wait that ended before all objects had the
// wanted status.
func (a *applier) overdue(ctx context.Context, wanted nf.Status, awaited map[string]nf.Health) error {
	timeout := &waitTimeout{cause: a.run.attempt.TimedOut(context.Cause(ctx))}
	op, lacks := "delete", "gone"
	if wanted == nf.Current {
		op, lacks = "make", "ready"
	}
	for _, h := range awaited {
		message := "is not " + lacks
		switch {
		case h.Message != "":
			message += ": " + h.Message
		case h.Status == nf.Unknown:
			message += ": its status is unknown"
		}
		timeout.waited = append(timeout.waited, nf.Violation{Object: h.Ref, Message: message})
		if wanted == nf.Current {
			timeout.unready = append(timeout.unready, h.Ref)
		}
	}
	slices.SortFunc(timeout.waited, func(a, b nf.Violation) int { return a.Object.Compare(b.Object) })
	slices.SortFunc(timeout.unready, nf.Ref.Compare)
	subject := "all objects"
	if wanted == nf.Current {
		subject += " ready"
	}
	return nf.E(nf.Timeout, op, subject, timeout)
}

// elaborate adds the messages of pods that are not ready to the error of a wait
// that timed out. If the pods cannot be read, the error stays as it is.
func (a *applier) elaborate(ctx context.Context, err error) error {
	timeout, ok := errors.AsType[*waitTimeout](err)
	if !ok || timeout.explained || len(timeout.unready) == 0 || ctx.Err() != nil {
		return err
	}
	timeout.explained = true
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	pods, more, why := a.run.cluster.Unready(ctx, a.run.op().Subject, timeout.unready, podsQuoted)
	if why != nil {
		a.run.attempt.Log().DebugContext(ctx, "failed to read the pods that are not ready", "error", a.run.redactor.error(why))
		return err
	}
	for _, pod := range pods {
		timeout.waited = append(timeout.waited, nf.Violation{Object: pod.Ref, Message: pod.Message})
	}
	if more > 0 {
		timeout.waited = append(timeout.waited, nf.Violation{Message: fmt.Sprintf("and %d more pods are not ready", more)})
	}
	return err
}
