package native

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// preference is how long a client wants to wait, as RFC 7240 lets it say.
type preference struct {
	wait    time.Duration
	applied string // for the Preference-Applied header; empty when nothing was asked
}

// preferenceOf reads the Prefer headers: respond-async does not wait at all,
// wait=N does so N seconds at most. What it does not understand it ignores, as
// the RFC says.
func preferenceOf(r *http.Request, longest time.Duration) preference {
	async, bounded, wait := false, false, longest
	var applied []string
	for word := range strings.SplitSeq(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		word, _, _ = strings.Cut(word, ";") // parameters; none is defined for ours
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
	if async && !bounded { // with both, the wait says how long an answer may take before it is asynchronous
		wait = 0
	}
	return preference{wait: wait, applied: strings.Join(applied, ", ")}
}

// applied reports whether an operation has done what a create or an update
// waits for. One that is being taken back has not, though it had.
func applied(op nf.Operation) bool { return !op.Applied.IsZero() && !op.Undoing }

// ended reports whether an operation has ended.
func ended(op nf.Operation) bool { return op.State.Final() }

// await waits for an operation, as long as the client wants, until done says
// so, and returns the last that was seen of it. An operation that has ended
// badly is its error. When the wait is over first, the result is not done, and
// the headers name the operation: the request's end never ends the operation.
func (a *API) await(w http.ResponseWriter, r *http.Request, op nf.Operation, done func(nf.Operation) bool) (nf.Operation, bool, error) {
	want := preferenceOf(r, a.cfg.Wait)
	ctx, cancel := context.WithTimeout(r.Context(), want.wait)
	defer cancel()
	for latest, err := range a.follow(ctx, op.ID) {
		if err != nil {
			return op, false, &nf.Error{Kind: nf.KindOf(err), Op: "wait for", Subject: "operation " + op.ID, Operation: op.ID, Err: err}
		}
		op = latest
		if op.State.Final() && op.State != nf.Succeeded {
			return op, false, failure(op)
		}
		if op.State.Final() || done(op) {
			return op, true, nil
		}
	}
	w.Header().Set("Location", northbound.OperationPath(op.ID))
	if want.applied != "" {
		w.Header().Set("Preference-Applied", want.applied)
	}
	return op, false, nil
}

// follow yields the versions of an operation until it is final or the context
// ends; the latter is no error, whatever it interrupts.
func (a *API) follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		if ctx.Err() != nil {
			return
		}
		for op, err := range a.cfg.Operations.Follow(ctx, id) {
			if err != nil && ctx.Err() != nil {
				return
			}
			if !yield(op, err) {
				return
			}
		}
	}
}

// failure returns the error that an operation ended with.
func failure(op nf.Operation) error {
	f := op.Failure
	if f == nil {
		f = &nf.Failure{Kind: nf.Failed, Message: "the operation " + string(op.State)}
		if op.State == nf.OperationCancelled {
			f.Kind, f.Message = nf.Cancelled, "the operation was cancelled"
		}
	}
	verb, subject := string(op.Verb), "VNF instance "+op.Instance
	began := "cannot " + verb + " " + subject + ": " // so may the record, and once is enough
	return &nf.Error{
		Kind: f.Kind, Op: verb, Subject: subject, Reason: f.Reason,
		Operation: op.ID, Err: recorded{strings.TrimPrefix(f.Message, began), f.Violations},
	}
}

// recorded is the cause of a failure as the operation's record keeps it.
type recorded struct {
	message    string
	violations nf.Violations
}

func (e recorded) Error() string { return e.message }

func (e recorded) Unwrap() error {
	if len(e.violations) == 0 {
		return nil
	}
	return e.violations
}

// refuseOperation answers for an operation that went wrong, or that cannot be
// waited for.
func refuseOperation(w http.ResponseWriter, r *http.Request, op nf.Operation, err error) error {
	northbound.Refuse(w, r, err, func(p *northbound.Problem) {
		p.VNF, p.Operation, p.OperationURL = op.Instance, op.ID, northbound.OperationPath(op.ID)
		if _, ok := errors.AsType[recorded](err); ok {
			p.Detail = err.Error() // everybody can read it in the operation
		}
	})
	return nil
}

// answerApplied waits until an operation has applied its objects, and answers
// with the instance: with the status then, and 202 when the wait is over first.
func (a *API) answerApplied(w http.ResponseWriter, r *http.Request, op nf.Operation, status int) error {
	op, done, err := a.await(w, r, op, applied)
	if err != nil {
		return refuseOperation(w, r, op, err)
	}
	if !done {
		status = http.StatusAccepted
	}
	// The wait may have ended because the service is stopping: its client still
	// gets an answer.
	in, err := a.cfg.Instances.Instance(context.WithoutCancel(r.Context()), op.Instance)
	if err != nil {
		return refuseOperation(w, r, op, err)
	}
	// The record speaks of the new revision when that is in force, which is when
	// everything is ready. The answer is about what was asked for.
	if rev := op.Target; rev.Number > 0 {
		in.Package, in.Inputs, in.Sensitive = rev.Package, rev.Inputs, rev.Sensitive
		in.Labels, in.Description, in.Revision = rev.Labels, rev.Description, rev.Number
		in.Release, in.Amendments = rev.Release, rev.Amendments
	}
	out := fromInstance(in)
	out.Operation, out.Links["operation"] = op.ID, northbound.OperationPath(op.ID)
	out.Warnings = op.Warnings
	if status == http.StatusCreated {
		w.Header().Set("Location", instancePath(in.ID))
	}
	return northbound.Answer(w, status, out)
}

// answerPreview answers with what a request would do.
func answerPreview(w http.ResponseWriter, p nf.Preview, err error) error {
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, struct {
		Changes  []change `json:"changes"`
		Warnings []string `json:"warnings"`
		Confirm  string   `json:"confirm,omitempty"`
	}{each(p.Changes, fromChange), list(p.Warnings), p.Confirm})
}
