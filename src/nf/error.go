package nf

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what sort of failure an error is. Callers branch on kinds, never on
// text; the northbound maps each kind to one HTTP status.
type Kind int

// The kinds of failure.
const (
	Internal        Kind = iota // a defect or an unexpected failure of our own
	Invalid                     // the input is wrong; Violations say where
	NotFound                    // the named thing does not exist
	Exists                      // the name is taken
	Conflict                    // the state of something else forbids it
	Busy                        // another operation is running on the instance
	Unreachable                 // a region or the store cannot be talked to
	Unsupported                 // the region does not know the kind or version
	TooLarge                    // a limit on size or number is exceeded
	Failed                      // the region accepted the objects but they did not work
	Timeout                     // a deadline passed
	Cancelled                   // somebody asked to stop
	Unauthenticated             // nobody knows who asks
	Forbidden                   // he who asks may not
	TooMany                     // he who asks does so too often
)

// String returns the kind's stable name, as it appears in logs and records.
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
	Internal: "internal", Invalid: "invalid", NotFound: "not-found", Exists: "exists",
	Conflict: "conflict", Busy: "busy", Unreachable: "unreachable", Unsupported: "unsupported",
	TooLarge: "too-large", Failed: "failed", Timeout: "timeout", Cancelled: "cancelled",
	Unauthenticated: "unauthenticated", Forbidden: "forbidden", TooMany: "too-many",
}

// Error is a failure that a caller may branch on.
type Error struct {
	Kind    Kind
	Op      string // what was being done: "register", "instantiate"
	Subject string // what it was done to: `cloud region "east"`
	Reason  string // a stable word that narrows the kind: "dns", "tls", "unauthorized"; may be empty
	Err     error  // the cause; may be nil

	Operation string        // the operation that is in the way, of a Busy error
	Confirm   string        // what a request must bring to be granted after all, of a Conflict with reason "confirm"
	After     time.Duration // when it is worth trying again, of a Busy, Unreachable or TooMany error; 0: unknown
}

// E returns an Error of the kind: it cannot op subject, because of cause.
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

// UnlessGone returns the error, or nil when it is NotFound: for what shall not be
// there in the end.
func UnlessGone(err error) error {
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

// ConfirmOf returns what would confirm the request that an error refuses, or "".
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

// AfterOf returns when it is worth trying again, or 0.
func AfterOf(err error) time.Duration {
	var e *Error
	for errors.As(err, &e) {
		if e.After > 0 {
			return e.After
		}
		err = e.Err
	}
	return 0
}

// Violation is one error in an input: where it is, and what is wrong.
type Violation struct {
	Object  Ref    `json:"object,omitzero"` // the object that is wrong; zero if it is none
	Field   string `json:"field,omitempty"` // dotted path in the object, or else in the request: "spec.replicas"
	File    string `json:"file,omitempty"`  // file in the package
	Line    int    `json:"line,omitempty"`  // line in the file, from 1
	Message string `json:"message"`
}

// Place says which object and field the violation is about, for people:
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

// String says "file:line: object: field: message", leaving out what is not known.
func (v Violation) String() string {
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
	b.WriteString(v.Message)
	return b.String()
}

// Violations is an error of kind Invalid that lists all that is wrong at once.
type Violations []Violation

// Error joins the violations with "; ".
func (v Violations) Error() string {
	lines := make([]string, len(v))
	for i := range v {
		lines[i] = v[i].String()
	}
	return strings.Join(lines, "; ")
}

// ViolationsOf returns the violations in the chain, or nil.
func ViolationsOf(err error) Violations {
	v, _ := errors.AsType[Violations](err)
	return v
}
