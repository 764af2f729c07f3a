package northbound

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Problem is the body of every refusal: RFC 9457, with members of our own from
// RequestID on.
type Problem struct {
	Type         string      `json:"type"`
	Title        string      `json:"title"`
	Status       int         `json:"status"`
	Detail       string      `json:"detail"`
	Instance     string      `json:"instance"`
	RequestID    string      `json:"request_id"`
	Kind         nf.Kind     `json:"kind"`
	Reason       string      `json:"reason,omitempty"`
	Confirm      string      `json:"confirm,omitempty"`
	Operation    string      `json:"operation,omitempty"`
	OperationURL string      `json:"operation_url,omitempty"`
	VNF          string      `json:"vnf_id,omitempty"`
	Errors       []Violation `json:"errors,omitempty"`
}

// Violation is one error in an input, as clients see it. Field names the object,
// too, for people; programs read Object.
type Violation struct {
	Object  *Object `json:"object,omitempty"`
	Field   string  `json:"field,omitempty"`
	File    string  `json:"file,omitempty"`
	Line    int     `json:"line,omitempty"`
	Message string  `json:"message"`
}

// Object is the name of an object in a cloud region, as clients see it.
type Object struct {
	APIVersion string `json:"api_version"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Violations returns violations as clients see them.
func Violations(violations nf.Violations) []Violation {
	var out []Violation
	for _, v := range violations {
		shown := Violation{Field: v.Place(), File: v.File, Line: v.Line, Message: v.Message}
		if (v.Object != nf.Ref{}) {
			shown.Object = &Object{APIVersion: v.Object.APIVersion(), Kind: v.Object.Kind, Namespace: v.Object.Namespace, Name: v.Object.Name}
		}
		out = append(out, shown)
	}
	return out
}

// OperationPath returns the path under which an operation is read.
func OperationPath(id string) string { return "/v1/operations/" + id }

// Refuse answers with the problem that an error is. The cause of an internal
// error is logged and not told. Amend may change the problem before it is
// written. Nothing must have been written yet.
func Refuse(w http.ResponseWriter, r *http.Request, err error, amend ...func(*Problem)) {
	p := problemOf(r, err)
	for _, f := range amend {
		f(&p)
	}
	if after := nf.AfterOf(err); after > 0 {
		whole := (after + time.Second - 1) / time.Second // earlier would be too early
		w.Header().Set("Retry-After", strconv.FormatInt(int64(whole), 10))
	}
	c := callOf(r.Context())
	c.failed, c.kind, c.begun = true, p.Kind, p.Operation
	if p.Status == http.StatusInternalServerError {
		c.log.ErrorContext(r.Context(), "a request failed", "request_id", p.RequestID, "error", err)
	}
	write(w, p)
}

func problemOf(r *http.Request, err error) Problem {
	kind := nf.KindOf(err)
	p := Problem{
		Title: outcomes[kind].title, Status: Status(err), Detail: err.Error(),
		Instance: r.URL.Path, RequestID: RequestID(r.Context()),
		Kind: kind, Reason: nf.ReasonOf(err), Confirm: nf.ConfirmOf(err), Operation: nf.OperationOf(err),
		Errors: Violations(nf.ViolationsOf(err)),
	}
	if e, ok := errors.AsType[*protocolError](err); ok {
		p.Kind, p.Title = e.kind(), http.StatusText(e.status)
	} else if kind == nf.Internal {
		p.Detail = "an unexpected failure; the log has its cause under the request's id"
	}
	if after := nf.AfterOf(err); after > 0 && p.Kind == nf.Unreachable {
		p.Detail += "; next attempt in " + after.Round(time.Millisecond).String()
	}
	p.Type = "/docs#problem-" + p.Kind.String()
	if p.Operation != "" {
		p.OperationURL = OperationPath(p.Operation)
	}
	return p
}

func write(w http.ResponseWriter, p Problem) {
	// A problem has no value that JSON cannot say.
	_ = respond(w, p.Status, "application/problem+json", p)
}
