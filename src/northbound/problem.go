package northbound

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Refuse answers with the problem for an error. The cause of an internal error
// is logged and not sent to the client. Amend may change the problem before it
// is written. Nothing may have been written before.
func Refuse(w http.ResponseWriter, r *http.Request, err error, amend ...func(*wire.Problem)) {
	write(w, Report(w, r, err, amend...))
}

// Report does what Refuse does, except that it returns the problem and does not
// write it. An API that has another form of errors writes that form.
func Report(w http.ResponseWriter, r *http.Request, err error, amend ...func(*wire.Problem)) wire.Problem {
	p := problemOf(r, err)
	for _, f := range amend {
		f(&p)
	}
	if after := nf.RetryAfterOf(err); after > 0 {
		whole := (after + time.Second - 1) / time.Second // rounded up: never too early
		w.Header().Set("Retry-After", strconv.FormatInt(int64(whole), 10))
	}
	c := callOf(r.Context())
	c.failed, c.kind, c.begun = true, p.Kind, p.Operation
	if p.Status == http.StatusInternalServerError {
		c.log.ErrorContext(r.Context(), "request failed", "request_id", p.RequestID, "error", err)
	}
	return p
}

func problemOf(r *http.Request, err error) wire.Problem {
	kind := nf.KindOf(err)
	p := wire.Problem{
		Title: http.StatusText(Status(err)), Status: Status(err), Detail: err.Error(),
		Instance: r.URL.Path, RequestID: RequestID(r.Context()),
		Kind: kind, Reason: nf.ReasonOf(err), Confirm: nf.ConfirmOf(err), Operation: nf.OperationOf(err),
		Errors: wire.ViolationsOf(nf.ViolationsOf(err)),
	}
	if e, ok := errors.AsType[*protocolError](err); ok {
		p.Kind = e.kind()
	} else if kind == nf.Internal {
		p.Detail, p.Errors = "unexpected error; the service's log contains the cause under the request's id", nil
	}
	if after := nf.RetryAfterOf(err); after > 0 && p.Kind == nf.Unreachable {
		p.Detail += "; next attempt in " + after.Round(time.Millisecond).String()
	}
	p.Type = "/docs#problem-" + p.Kind.String()
	if p.Operation != "" {
		p.OperationURL = wire.OperationPath(p.Operation)
	}
	return p
}

func write(w http.ResponseWriter, p wire.Problem) {
	// A problem contains no value that cannot be encoded.
	_ = respond(w, p.Status, "application/problem+json", p)
}
