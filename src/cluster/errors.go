package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// region is a region's id, as its errors name it. It is empty during
// registration, when the region does not have an id yet.
type region string

// String returns the region's name for messages.
func (r region) String() string { return strings.TrimSpace("cloud region " + string(r)) }

// failObject is fail for one object. The violations of an nf.Invalid error name
// its fields.
func (r region) failObject(ctx context.Context, op string, ref nf.Ref, err error) error {
	err = r.fail(ctx, op, ref.String(), err)
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && nf.KindOf(err) == nf.Invalid {
		return nf.E(nf.Invalid, op, ref.String(), violations(ref, status.Status()))
	}
	return err
}

// fail translates the error of a request into an nf.Error. Errors of Kubernetes
// and the network become kinds here; only Probe has its own translation.
func (r region) fail(ctx context.Context, op, subject string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*nf.Error](err); ok {
		return err
	}
	e := &nf.Error{Op: op, Subject: subject, Err: err}
	status, refused := errors.AsType[*apierrors.StatusError](err)
	_, held := errors.AsType[*breaker.OpenError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Kind, e.Err = nf.Timeout, context.Cause(ctx)
	case ctx.Err() != nil:
		e.Kind, e.Err = nf.Cancelled, context.Cause(ctx)
	case errors.Is(err, errReplaced):
		e.Kind, e.Reason = nf.Unreachable, nf.ReasonReplaced
	case held:
		e.Kind, e.Reason = nf.Unreachable, nf.ReasonBreaker
	case refused:
		e.Kind, e.Reason = refusalKind(status.Status())
		if rule := missingRule(status.Status()); rule != "" {
			e.Err = fmt.Errorf("%w; %s", err, rule)
		}
	default:
		e.Kind, e.Reason = nf.Unreachable, unreachable(err)
	}
	if e.Kind == nf.Unreachable {
		e.RetryAfter, e.Err = retryAfter(err), &unreachableError{r.String(), e.Reason, err}
	}
	return e
}

// unreachableError is the cause of an nf.Unreachable error.
type unreachableError struct {
	region, reason string
	err            error
}

// Error returns, for example, "cloud region east is unreachable (tcp:
// connection refused)".
func (a *unreachableError) Error() string {
	if closed, held := errors.AsType[*breaker.OpenError](a.err); held {
		return fmt.Sprintf("%s is unreachable (%s)", a.region, closed.Cause)
	}
	if errors.Is(a.err, errReplaced) {
		return a.region + " has a new access, or was deregistered"
	}
	// Omit the URL: the enclosing error names the operation.
	return fmt.Sprintf("%s is unreachable (%s: %s)", a.region, a.reason, outbound.Plain(a.err))
}

func (a *unreachableError) Unwrap() error { return a.err }

// refusalKind returns the kind and reason of an API server's error response.
func refusalKind(s metav1.Status) (nf.Kind, string) {
	switch s.Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return nf.Invalid, ""
	case metav1.StatusReasonUnauthorized:
		return nf.Unreachable, nf.ReasonUnauthorized
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
	}
	return codeKind(s)
}

// codeKind is refusalKind for a response whose reason is not known. A webhook may deny a
// request with any reason, or with none; the API server only ensures that the code is at
// least 400.
func codeKind(s metav1.Status) (nf.Kind, string) {
	switch s.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return nf.Invalid, ""
	case http.StatusUnauthorized:
		return nf.Unreachable, nf.ReasonUnauthorized
	case http.StatusForbidden:
		return forbidden(s)
	case http.StatusNotFound:
		return nf.NotFound, ""
	case http.StatusConflict:
		return nf.Conflict, ""
	case http.StatusRequestTimeout, http.StatusGone, http.StatusTooManyRequests:
		return nf.Unreachable, nf.ReasonUnavailable
	case http.StatusInternalServerError:
		if kind, known := internalKind(s.Message); known && s.Reason == metav1.StatusReasonUnknown {
			return kind, ""
		}
	}
	foreign := apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: s}, metav1.CauseTypeUnexpectedServerResponse)
	if !foreign && s.Code >= http.StatusBadRequest && s.Code < http.StatusInternalServerError {
		return nf.Failed, ""
	}
	return nf.Unreachable, nf.ReasonUnavailable
}

// internalKind returns the kind of a response with code 500 and without a reason. The API server
// passes on errors of etcd in this form, most of which are temporary, and also permanent ones.
// The protocol has nothing else that tells them apart, so texts are matched: of Kubernetes'
// package managedfields and the merge that it calls, for an applied object that does not fit its
// schema (an unknown field, a wrong type); of a webhook; and of etcd, for a large object.
func internalKind(message string) (nf.Kind, bool) {
	for _, known := range [...]struct {
		words string
		kind  nf.Kind
	}{
		{"failed to create typed ", nf.Invalid},
		{"failed to convert new ", nf.Invalid},
		{"failed to merge config: ", nf.Invalid},
		{"failed to get field set: ", nf.Invalid},
		{"failed to prune fields: ", nf.Invalid},
		{"failed to compare objects: ", nf.Invalid},
		{"admission webhook ", nf.Failed},
		{"etcdserver: request is too large", nf.TooLarge},
		{"rpc error: code = ResourceExhausted desc = trying to send message larger than max", nf.TooLarge},
	} {
		if strings.HasPrefix(message, known.words) {
			return known.kind, true
		}
	}
	return nf.Unreachable, false
}

func forbidden(s metav1.Status) (nf.Kind, string) {
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if cause.Type == "NamespaceTerminating" {
				return nf.Busy, nf.ReasonTerminating
			}
		}
	}
	if isPermanentRejection(s.Message) {
		return nf.Failed, nf.ReasonQuota
	}
	return nf.Failed, nf.ReasonForbidden
}

// isPermanentRejection reports whether a message says that a pod or object was
// rejected for a reason that a retry does not change: a quota, or the Pod Security
// level of a namespace. Kubernetes has no code for either: controllers copy the API
// server's message to conditions and events, so only the text can be matched.
func isPermanentRejection(message string) bool {
	for _, words := range [...]string{"exceeded quota: ", "failed quota: ", "violates PodSecurity "} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// violations lists the causes in an API server's error response.
func violations(ref nf.Ref, s metav1.Status) nf.Violations {
	var v nf.Violations
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			said := nf.Text{Message: cause.Message}
			if cause.Type == metav1.CauseTypeFieldManagerConflict {
				said = mentioned(cause.Message)
			}
			v = append(v, nf.Violation{Object: ref, Field: fieldOf(cause.Field)}.Saying(said.Map(clipped)))
		}
	}
	if len(v) == 0 {
		v = append(v, nf.Violation{Object: ref, Message: clipped(s.Message)})
	}
	return v
}

// missingRule returns a sentence with the rule that the region's account lacks, or "".
// Kubernetes has no code that tells a missing permission from a denial by an admission
// plugin, so the text is matched, as for quotas.
func missingRule(s metav1.Status) string {
	if s.Reason != metav1.StatusReasonForbidden || s.Details == nil || !strings.Contains(s.Message, `is forbidden: User "`) {
		return ""
	}
	return fmt.Sprintf("the region's account needs a rule for {apiGroups: [%q], resources: [%q]}: on a site of kud, add it to region_rules_extra",
		s.Details.Group, s.Details.Kind)
}

// quotedManager matches the field manager of an owner in the message of a
// conflict. The API server names the manager nowhere else.
var quotedManager = regexp.MustCompile(`"` + managerPrefix + `([^"]+)"`)

// mentioned replaces the field managers of owners in the message of a conflict
// by mentions of the owners.
func mentioned(message string) nf.Text {
	var parts []nf.Text
	rest := 0
	for _, at := range quotedManager.FindAllStringSubmatchIndex(message, -1) {
		parts = append(parts, nf.Text{Message: message[rest:at[0]]}, named(message[at[2]:at[3]]).Mention())
		rest = at[1]
	}
	return nf.JoinTexts(append(parts, nf.Text{Message: message[rest:]}), "")
}

// longestMessage is how much of an API server's message is returned, in bytes.
// The message may quote a whole object.
const longestMessage = 2 << 10

// clipped shortens a text to longestMessage bytes, with a note of how much was
// cut.
func clipped(text string) string { return cut(text, longestMessage) }

// cut shortens a text to at most longest bytes, with a note of how much was
// cut.
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

// fieldOf returns the field path of an API server's cause without a leading
// dot; "" if there is none.
func fieldOf(path string) string {
	if path == "<nil>" { // field.Path's text for nil
		return ""
	}
	return strings.TrimPrefix(path, ".")
}

// transient reports whether a request may succeed if it is retried.
func transient(err error) bool {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		kind, reason := refusalKind(status.Status())
		return kind == nf.Unreachable && reason == nf.ReasonUnavailable && !apierrors.IsResourceExpired(err)
	}
	if _, ours := errors.AsType[*nf.Error](err); ours {
		return false // the response was received but is not acceptable
	}
	if _, held := errors.AsType[*breaker.OpenError](err); held || errors.Is(err, errReplaced) {
		return false
	}
	if errors.Is(err, errSlow) {
		return false // a retry would be just as slow
	}
	switch unreachable(err) {
	case nf.ReasonTLS, nf.ReasonDNS, nf.ReasonOversized, nf.ReasonNotKubernetes, nf.ReasonNotAllowed, nf.ReasonCrowded:
		return false
	}
	return true
}

// unreachable returns the reason why a request had no usable response.
func unreachable(err error) string {
	_, redirected := errors.AsType[*redirectError](err)
	if missing, ok := errors.AsType[*tokenError](err); ok {
		return missing.reason
	}
	switch {
	case errors.Is(err, errSilent), errors.Is(err, errSlow):
		return nf.ReasonTimeout
	case errors.Is(err, errCrowded):
		return nf.ReasonCrowded
	case isOversized(err):
		return nf.ReasonOversized
	case discovery.IsGroupDiscoveryFailedError(err):
		return nf.ReasonUnavailable // the server of an aggregated API is unavailable
	case errors.Is(err, errGarbage), redirected:
		return nf.ReasonNotKubernetes
	case errors.Is(err, outbound.ErrNotAllowed):
		return nf.ReasonNotAllowed
	}
	return cmp.Or(outbound.Reason(err), nf.ReasonTCP)
}
