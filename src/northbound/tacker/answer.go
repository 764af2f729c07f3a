package tacker

import (
	"errors"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// failure is an error as Tacker's clients read it.
type failure struct {
	Fault fault `json:"TackerError"`
}

type fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Detail  string `json:"detail"` // clients print it below the message
}

// refusal is an error that has a status or a type of its own.
type refusal struct {
	status int // 0: that of the cause's kind
	name   string
	cause  error // its kind is logged and audited
}

// Error returns the text of the cause.
func (e *refusal) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *refusal) Unwrap() error { return e.cause }

// types maps the kinds of errors to the names of Tacker's exceptions.
var types = map[nf.Kind]string{
	nf.Internal:    "HTTPInternalServerError",
	nf.Invalid:     "InvalidInput",
	nf.NotFound:    "VimNotFoundException",
	nf.Exists:      "DuplicateEntity",
	nf.Conflict:    "VimInUseException",
	nf.Busy:        "VimInUseException",
	nf.Unreachable: "VimConnectionException",
	nf.Unsupported: "VimUnsupportedResourceTypeException",
	nf.TooLarge:    "HTTPRequestEntityTooLarge",
	nf.Failed:      "VimConnectionException",
	nf.Timeout:     "VimConnectionException",
	nf.Cancelled:   "HTTPConflict",

	nf.Unauthenticated: "NotAuthorized",
	nf.Forbidden:       "PolicyNotAuthorized",
	nf.TooManyRequests: "HTTPTooManyRequests",
}

// typeOf returns the name of the exception for an error.
func typeOf(err error) string {
	if e, ok := errors.AsType[*refusal](err); ok {
		return e.name
	}
	if nf.ReasonOf(err) == nf.ReasonUnauthorized {
		return "VimUnauthorizedException"
	}
	return types[nf.KindOf(err)]
}

// handle wraps a handler so that its error is answered in Tacker's form.
func handle(h northbound.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			writeError(w, r, err)
		}
	})
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	p := northbound.Report(w, r, err)
	message, status := p.Detail, p.Status
	if e, ok := errors.AsType[*refusal](err); ok && e.status != 0 {
		status = e.status
	}
	if status == http.StatusInternalServerError {
		message += " " + p.RequestID
	}
	_ = northbound.Answer(w, status, failure{fault{Type: typeOf(err), Message: message}}) // it has only texts
}
