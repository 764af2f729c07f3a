package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// failObject is fail for what was done to one object; violations name its
// fields.
func (c *Cluster) failObject(ctx context.Context, op string, ref nf.Ref, err error) error {
	err = c.fail(ctx, op, ref.String(), err)
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && nf.KindOf(err) == nf.Invalid {
		return nf.E(nf.Invalid, op, ref.String(), violations(ref, status.Status()))
	}
	return err
}

// fail translates an error of a request into an nf.Error. It is the only place
// where Kubernetes' and the network's errors become kinds.
func (c *Cluster) fail(ctx context.Context, op, subject string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*nf.Error](err); ok {
		return err
	}
	e := &nf.Error{Op: op, Subject: subject, Err: err}
	status, refused := errors.AsType[*apierrors.StatusError](err)
	_, held := errors.AsType[*shut](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Kind, e.Err = nf.Timeout, context.Cause(ctx)
	case ctx.Err() != nil:
		e.Kind, e.Err = nf.Cancelled, context.Cause(ctx)
	case errors.Is(err, errReplaced):
		e.Kind, e.Reason = nf.Unreachable, "replaced"
	case held:
		e.Kind, e.Reason = nf.Unreachable, "breaker"
	case refused:
		e.Kind, e.Reason = refusalKind(status.Status())
	default:
		e.Kind, e.Reason = nf.Unreachable, unreachable(err)
	}
	if e.Kind == nf.Unreachable {
		e.After, e.Err = asked(err), &away{c.name(), e.Reason, err}
	}
	return e
}

// name says which region it is, for people. One that is being registered has no
// name yet.
func (c *Cluster) name() string { return strings.TrimSpace("cloud region " + c.guard.region) }

// away is the cause of an nf.Unreachable error.
type away struct {
	region, reason string
	err            error
}

// Error says "cloud region east is unreachable (tcp: connection refused)".
func (a *away) Error() string {
	if closed, held := errors.AsType[*shut](a.err); held {
		return fmt.Sprintf("%s is unreachable (%s)", a.region, closed.cause)
	}
	if errors.Is(a.err, errReplaced) {
		return a.region + " has another kubeconfig now, or is gone"
	}
	// The URL says nothing: what was to be done is told by the error around it.
	return fmt.Sprintf("%s is unreachable (%s: %s)", a.region, a.reason, outbound.Bare(a.err))
}

func (a *away) Unwrap() error { return a.err }

// refusalKind says what sort of failure an API server's refusal is.
func refusalKind(s metav1.Status) (nf.Kind, string) {
	switch s.Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return nf.Invalid, ""
	case metav1.StatusReasonUnauthorized:
		return nf.Unreachable, "unauthorized"
	case metav1.StatusReasonForbidden:
		return forbidden(s)
	case metav1.StatusReasonNotFound:
		return nf.NotFound, ""
	case metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists:
		return nf.Conflict, ""
	case metav1.StatusReasonRequestEntityTooLarge:
		return nf.TooLarge, ""
	case metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonUnsupportedMediaType:
		return nf.Unsupported, ""
	case metav1.StatusReasonUnknown:
		// An object that does not fit its schema (an unknown field, a wrong
		// type) makes server-side apply fail with 500 and no reason at all;
		// real faults of the API server bear InternalError.
		if s.Code == http.StatusInternalServerError || s.Code == http.StatusUnprocessableEntity {
			return nf.Invalid, ""
		}
	}
	return nf.Unreachable, "unavailable"
}

func forbidden(s metav1.Status) (nf.Kind, string) {
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if cause.Type == "NamespaceTerminating" {
				return nf.Busy, "terminating"
			}
		}
	}
	if noRoom(s.Message) {
		return nf.Failed, "quota"
	}
	return nf.Failed, "forbidden"
}

// noRoom reports whether a message says that a pod or object was refused for a
// reason that trying again does not change: a quota, or a namespace's security
// level. Kubernetes has no code for either: its controllers pass the API
// server's words on in conditions and events, so the words are all there is.
func noRoom(message string) bool {
	for _, words := range [...]string{"exceeded quota: ", "failed quota: ", "violates PodSecurity "} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// violations lists what an API server does not like about an object.
func violations(ref nf.Ref, s metav1.Status) nf.Violations {
	var v nf.Violations
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			v = append(v, nf.Violation{Object: ref, Field: fieldOf(cause.Field), Message: clipped(cause.Message)})
		}
	}
	if len(v) == 0 {
		v = append(v, nf.Violation{Object: ref, Message: clipped(s.Message)})
	}
	return v
}

// longestMessage is how much of an API server's message is handed on, in bytes.
// It may repeat a whole object.
const longestMessage = 2 << 10

// clipped cuts a text to longestMessage and says so.
func clipped(text string) string { return cut(text, longestMessage) }

// cut cuts a text to a number of bytes and says so.
func cut(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	const note = "… (%d more bytes)"
	end := longest - len(note) - len("9223372036854775807")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + fmt.Sprintf(note, len(text)-end)
}

// fieldOf returns the path that an API server's cause names, without a leading
// dot; "" for none.
func fieldOf(path string) string {
	if path == "<nil>" { // how field.Path says that there is none
		return ""
	}
	return strings.TrimPrefix(path, ".")
}

// transient reports whether a request may succeed if it is sent again.
func transient(err error) bool {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		kind, reason := refusalKind(status.Status())
		return kind == nf.Unreachable && reason == "unavailable"
	}
	if _, held := errors.AsType[*shut](err); held || errors.Is(err, errReplaced) {
		return false
	}
	if errors.Is(err, errSlow) {
		return false // it would be as slow again
	}
	switch unreachable(err) {
	case "tls", "dns", "oversized", "not-kubernetes", "not-allowed", "crowded":
		return false
	}
	return true
}

// unreachable narrows the reason why a request had no answer.
func unreachable(err error) string {
	_, redirected := errors.AsType[*misdirected](err)
	switch {
	case errors.Is(err, errSilent), errors.Is(err, errSlow):
		return "timeout"
	case errors.Is(err, errCrowded):
		return "crowded"
	case isOversized(err):
		return "oversized"
	case errors.Is(err, errGarbage), redirected:
		return "not-kubernetes"
	case errors.Is(err, outbound.ErrNotAllowed):
		return "not-allowed"
	}
	return cmp.Or(outbound.Reason(err), "tcp")
}
