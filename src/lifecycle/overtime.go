package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	podsQuoted  = 5                // in the error of an operation whose time ran out
	explainTime = 10 * time.Second // for the reads that explain why an object is not ready
)

// expired ends the context of a stage or a hook whose time is over.
type expired struct{ limit time.Duration }

func (e *expired) Error() string { return fmt.Sprintf("timed out after %s", e.limit) }

// withTimeout is context.WithTimeout with the cause expired. Without a timeout it
// returns the context as it is.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, &expired{timeout})
}

// overtime is the cause of a Timeout error: the time that ran out, and the
// objects that were waited for. Its violations can be found in the chain.
type overtime struct {
	cause     error
	waited    nf.Violations
	unready   []nf.Ref // objects that were to become ready
	explained bool     // their pods were asked for
}

func (o *overtime) Error() string { return o.cause.Error() + ": " + o.waited.Error() }

func (o *overtime) Unwrap() error { return o.waited }

// overdue returns the error of a wait that ended before all objects had the
// wanted status.
func (r *run) overdue(ctx context.Context, wanted nf.Status, awaited map[string]nf.Health) error {
	late := &overtime{cause: r.timedOut(context.Cause(ctx))}
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
		late.waited = append(late.waited, nf.Violation{Object: h.Ref, Message: message})
		if wanted == nf.Current {
			late.unready = append(late.unready, h.Ref)
		}
	}
	slices.SortFunc(late.waited, func(a, b nf.Violation) int { return a.Object.Compare(b.Object) })
	slices.SortFunc(late.unready, nf.Ref.Compare)
	subject := "all objects"
	if wanted == nf.Current {
		subject += " ready"
	}
	return nf.E(nf.Timeout, op, subject, late)
}

// timedOut says of the end of a context how long it had, if its time ran out.
func (r *run) timedOut(cause error) error {
	if errors.Is(cause, errDeadline) {
		return &expired{r.op.Deadline.Sub(r.op.Accepted)} // an undo has as much time
	}
	return cause
}

// elaborate adds the words of the pods that are not ready to the error of a wait
// whose time ran out. If the pods cannot be read, the error stays as it is.
func (r *run) elaborate(ctx context.Context, err error) error {
	late, ok := errors.AsType[*overtime](err)
	if !ok || late.explained || len(late.unready) == 0 || ctx.Err() != nil {
		return err
	}
	late.explained = true
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	pods, more, why := r.cluster.Unready(ctx, r.op.Instance, late.unready, podsQuoted)
	if why != nil {
		r.log.DebugContext(ctx, "the pods that are not ready cannot be read", "error", r.secrets.error(why))
		return err
	}
	for _, pod := range pods {
		late.waited = append(late.waited, nf.Violation{Object: pod.Ref, Message: pod.Message})
	}
	if more > 0 {
		late.waited = append(late.waited, nf.Violation{Message: fmt.Sprintf("and %d more pods are not ready", more)})
	}
	return err
}

// rewritten returns an error with other violations in the place of its own.
func rewritten(err error, v nf.Violations) error {
	out := &nf.Error{Kind: nf.KindOf(err), Op: "apply", Subject: "the package", Reason: nf.ReasonOf(err), Operation: nf.OperationOf(err), Err: v}
	if late, ok := errors.AsType[*overtime](err); ok {
		if was, ok := errors.AsType[*nf.Error](err); ok {
			out.Op, out.Subject = was.Op, was.Subject
		}
		out.Err = &overtime{cause: late.cause, waited: v, unready: late.unready, explained: late.explained}
	}
	return out
}
