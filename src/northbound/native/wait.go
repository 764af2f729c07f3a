package native

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// preference is how long a client wants to wait, according to RFC 7240.
type preference struct {
	wait    time.Duration
	applied string // value of the Preference-Applied header; empty: no preference given
}

// preferenceOf parses the Prefer headers. respond-async means no wait, and
// wait=N means at most N seconds. Other preferences are ignored, as the RFC
// requires.
func preferenceOf(r *http.Request, longest time.Duration) preference {
	async, bounded, wait := false, false, longest
	var applied []string
	for word := range strings.SplitSeq(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		word, _, _ = strings.Cut(word, ";") // parameters; neither preference defines any
		name, value, valued := strings.Cut(strings.TrimSpace(word), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			async = true
			applied = append(applied, "respond-async")
		case "wait":
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if !valued || err != nil {
				continue
			}
			wait, bounded = min(time.Duration(seconds)*time.Second, longest), true
			applied = append(applied, "wait="+strconv.FormatUint(seconds, 10))
		}
	}
	if async && !bounded { // with both, wait limits the time before the asynchronous response
		wait = 0
	}
	return preference{wait: wait, applied: strings.Join(applied, ", ")}
}

// reference identifies an operation in a response.
type reference struct {
	id, path string
	instance string // empty: the operation of another subject
}

func instanceReference(op nf.Operation) reference {
	return reference{op.ID, wire.OperationPath(op.ID), op.Subject.ID}
}

func siteReference(op nf.Operation) reference {
	return reference{op.ID, wire.SiteOperationPath(op.Subject.ID, op.ID), ""}
}

func sharedReference(op nf.Operation) reference {
	return reference{op.ID, wire.OperationPath(op.ID), ""}
}

// refuse responds with the error of the operation, or of waiting for it.
func (o reference) refuse(w http.ResponseWriter, r *http.Request, err error) error {
	northbound.Refuse(w, r, err, func(p *wire.Problem) {
		p.VNF, p.Operation, p.OperationURL = o.instance, o.id, o.path
		if _, ok := errors.AsType[*nf.OperationError](err); ok {
			p.Detail, p.Errors = err.Error(), wire.ViolationsOf(nf.ViolationsOf(err)) // every reader of the operation can see them
		}
	})
	return nil
}

// waiter waits for operations in requests.
type waiter struct{ longest time.Duration }

// wait calls until with a context that lasts as long as the client wants to
// wait. Until follows the operation and returns true when the wait is over. If
// the context ends first, wait returns false and sets the headers that name the
// operation. The operation continues after the request.
func (wr waiter) wait(w http.ResponseWriter, r *http.Request, op reference, until func(context.Context) (bool, error)) (reached bool, err error) {
	want := preferenceOf(r, wr.longest)
	ctx, cancel := context.WithTimeout(r.Context(), want.wait)
	defer cancel()
	if ctx.Err() == nil {
		reached, err = until(ctx)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		return false, &nf.Error{Kind: nf.KindOf(err), Op: "wait for", Subject: "operation " + op.id, Operation: op.id, Err: err}
	case reached:
		return true, nil
	}
	w.Header().Set("Location", op.path)
	if want.applied != "" {
		w.Header().Set("Preference-Applied", want.applied)
	}
	return false, nil
}

// runner waits for the operations of VNF instances and responds with their
// results.
type runner struct {
	instances  Instances
	operations Operations
	waiter     waiter
	trace      func(*http.Request) string
}

// await waits until done returns true or the operation has ended, as long as
// the client wants to wait, and returns the operation. If the operation did not
// succeed, it returns the operation's error. If the wait ends first, it returns
// false.
func (n runner) await(w http.ResponseWriter, r *http.Request, op nf.Operation, done func(nf.Operation) bool) (nf.Operation, bool, error) {
	reached, err := n.waiter.wait(w, r, instanceReference(op), func(ctx context.Context) (reached bool, err error) {
		op, reached, err = northbound.Await(ctx, op, n.operations.Follow, done)
		return reached, err
	})
	if reached {
		err = op.Err()
	}
	return op, reached && err == nil, err
}

// answerApplied waits until an operation has applied its objects, and responds
// with the instance. The status is the given one, or 202 if the wait ends
// first.
func (n runner) answerApplied(w http.ResponseWriter, r *http.Request, op nf.Operation, status int) error {
	op, done, err := n.await(w, r, op, northbound.Applied)
	if err != nil {
		return instanceReference(op).refuse(w, r, err)
	}
	if !done {
		status = http.StatusAccepted
	}
	// The wait may have ended because the service is stopping; the client still
	// gets a response.
	in, err := n.instances.Instance(context.WithoutCancel(r.Context()), op.Subject.ID)
	if err != nil {
		return instanceReference(op).refuse(w, r, err)
	}
	// The record has the new revision only when everything is ready. The
	// response shows the requested one.
	if rev := op.Instance.Target; rev.Number > 0 {
		in.Package, in.Inputs, in.Sensitive = rev.Package, rev.Inputs, rev.Sensitive
		in.Labels, in.Description, in.Revision = rev.Labels, rev.Description, rev.Number
		in.Release, in.Amendments, in.Drift, in.Claims, in.AAI = rev.Release, rev.Amendments, rev.Drift, rev.Claims, rev.AAI
	}
	out := wire.InstanceOf(in)
	out.Operation, out.Links["operation"] = op.ID, wire.OperationPath(op.ID)
	out.Warnings = op.Warnings
	if status == http.StatusCreated {
		w.Header().Set("Location", wire.InstancePath(in.ID))
	}
	return northbound.Answer(w, status, out)
}

// ended waits until an operation has ended, as long as the client wants to wait, and
// returns the operation and its error. If the wait ends first, it returns false.
func (wr waiter) ended(w http.ResponseWriter, r *http.Request, operations KindOperations, ref reference, op nf.Operation) (nf.Operation, bool, error) {
	ended, err := wr.wait(w, r, ref, func(ctx context.Context) (bool, error) {
		for u, err := range operations.Follow(ctx, op.Subject.ID, op.ID, lastEvent) {
			if err != nil {
				return false, err
			}
			if u.Operation != nil {
				op = *u.Operation
			}
			if op.State.Final() {
				return true, nil
			}
		}
		return false, nil
	})
	if ended {
		err = op.Err()
	}
	return op, ended, err
}

// lastEvent is greater than any event number.
const lastEvent = 1 << 30
