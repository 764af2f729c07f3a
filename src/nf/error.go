package nf

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is the kind of failure of an error. Callers branch on kinds, never on
// text; the northbound maps each kind to one HTTP status.
type Kind int

// The kinds of failure.
const (
	Internal        Kind = iota // a defect, or an unexpected failure of the service
	Invalid                     // the input is wrong; Violations say where
	NotFound                    // the named thing does not exist
	Exists                      // the name is taken
	Conflict                    // the state of another object prevents it
	Busy                        // another operation is running on the instance
	Unreachable                 // a region or the store cannot be reached
	Unsupported                 // the region does not know the kind or version
	TooLarge                    // a limit on size or number is exceeded
	Failed                      // the region accepted the objects but they did not work
	Timeout                     // a deadline passed
	Cancelled                   // cancelled on request
	Unauthenticated             // the caller is unknown
	Forbidden                   // the caller lacks a permission
	TooManyRequests             // a limit on rate, memory or concurrency is reached; a retry may succeed
)

// String returns the kind's stable name, as in logs and records.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return kindNames[Internal]
	}
	return kindNames[k]
}

// MarshalText writes the kind by its name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind by its name; an unknown name is Internal.
func (k *Kind) UnmarshalText(text []byte) error {
	*k = Internal
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
		}
	}
	return nil
}

var kindNames = [...]string{
	Internal: "internal", Invalid: "invalid", NotFound: "not-found", Exists: "already-exists",
	Conflict: "conflict", Busy: "busy", Unreachable: "unreachable", Unsupported: "unsupported",
	TooLarge: "too-large", Failed: "failed", Timeout: "timeout", Cancelled: "cancelled",
	Unauthenticated: "unauthenticated", Forbidden: "forbidden", TooManyRequests: "rate-limited",
}

// Error is a failure that a caller may branch on.
type Error struct {
	Kind    Kind
	Op      string // the action: "register", "instantiate"
	Subject string // its object: `cloud region "east"`
	Reason  string // a stable word that narrows the kind: "dns", "tls", "unauthorized"; may be empty
	Err     error  // the cause; may be nil

	Operation  string        // the running operation, of a Busy error
	Confirm    string        // the value that would confirm the request, of a Conflict with reason "confirmation-required"
	RetryAfter time.Duration // time until a retry is useful, of a Busy, Unreachable or TooManyRequests error; 0: unknown
}

// E returns an Error of a kind. It reads "cannot <op> <subject>: <cause>".
func E(kind Kind, op, subject string, cause error) error {
	return &Error{Kind: kind, Op: op, Subject: subject, Err: cause}
}

// Error says "cannot <op> <subject>: <cause>".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("cannot " + e.Op + " " + e.Subject)
	switch {
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	case e.Kind == NotFound:
		b.WriteString(": it does not exist")
	case e.Kind == Exists:
		b.WriteString(": it exists already")
	case e.Kind != Internal:
		b.WriteString(": " + e.Kind.String())
	}
	return b.String()
}

// Text returns the text of the error.
func (e *Error) Text() Text {
	if e.Err == nil {
		return Text{Message: e.Error()}
	}
	return Textf("cannot %s %s: %s", e.Op, e.Subject, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost Error in the chain; a nil error and
// one without a kind are Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	if _, ok := errors.AsType[Violations](err); ok {
		return Invalid
	}
	return Internal
}

// IgnoreNotFound returns nil if err is NotFound, otherwise err. Use it when
// deleting.
func IgnoreNotFound(err error) error {
	if KindOf(err) == NotFound {
		return nil
	}
	return err
}

// ReasonOf returns the first reason in the chain, or "".
func ReasonOf(err error) string {
	var e *Error
	for errors.As(err, &e) {
		if e.Reason != "" {
			return e.Reason
		}
		err = e.Err
	}
	return ""
}

// OperationOf returns the operation that a Busy error in the chain names, or "".
func OperationOf(err error) string {
	var e *Error
	for errors.As(err, &e) {
		if e.Operation != "" {
			return e.Operation
		}
		err = e.Err
	}
	return ""
}

// ConfirmOf returns the value that would confirm the rejected request, or "".
func ConfirmOf(err error) string {
	var e *Error
	for errors.As(err, &e) {
		if e.Confirm != "" {
			return e.Confirm
		}
		err = e.Err
	}
	return ""
}

// RetryAfterOf returns the time until a retry is useful, or 0.
func RetryAfterOf(err error) time.Duration {
	var e *Error
	for errors.As(err, &e) {
		if e.RetryAfter > 0 {
			return e.RetryAfter
		}
		err = e.Err
	}
	return 0
}

// Violation is one error in an input: its place and a message.
type Violation struct {
	Object   Ref         `json:"object,omitzero"` // the object with the error; zero: none
	Field    string      `json:"field,omitempty"` // dotted path in the object, or otherwise in the request: "spec.replicas"
	File     string      `json:"file,omitempty"`  // file in the package
	Line     int         `json:"line,omitempty"`  // line in the file, from 1
	Message  string      `json:"message"`
	Mentions []Mentioned `json:"mentions,omitempty"` // the mentions in Message

	// Of a placement: the cloud region that does not fit, and why.
	Region string          `json:"region,omitempty"`
	Reason PlacementReason `json:"reason,omitempty"`
}

// Place returns the object and field of the violation, for people. Example:
// "Deployment ns/web: spec.replicas".
func (v Violation) Place() string {
	switch {
	case v.Object == Ref{}:
		return v.Field
	case v.Field == "":
		return v.Object.String()
	}
	return v.Object.String() + ": " + v.Field
}

// String returns "file:line: object: field: message", without the unknown
// parts.
func (v Violation) String() string { return v.Text().String() }

// Text returns the text of String.
func (v Violation) Text() Text {
	var b strings.Builder
	if v.File != "" {
		b.WriteString(v.File)
		if v.Line > 0 {
			fmt.Fprintf(&b, ":%d", v.Line)
		}
		b.WriteString(": ")
	}
	if place := v.Place(); place != "" {
		b.WriteString(place + ": ")
	}
	return Textf("%s%s", b.String(), v.Said())
}

// Said returns the message with its mentions.
func (v Violation) Said() Text { return Text{v.Message, v.Mentions} }

// Saying returns the violation with a message.
func (v Violation) Saying(t Text) Violation {
	v.Message, v.Mentions = t.Message, t.Mentions
	return v
}

// Violations is an error of kind Invalid that lists all errors of an input.
type Violations []Violation

// Error joins the violations with "; ".
func (v Violations) Error() string { return v.Text().String() }

// Text returns the text of the error.
func (v Violations) Text() Text {
	lines := make([]Text, len(v))
	for i := range v {
		lines[i] = v[i].Text()
	}
	return JoinTexts(lines, "; ")
}

// ViolationsOf returns the violations in the chain, or nil.
func ViolationsOf(err error) Violations {
	v, _ := errors.AsType[Violations](err)
	return v
}
