package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// wrong translates an error of gophercloud. The text of those errors is not used: it
// has URLs and whole responses.
func (s *session) wrong(ctx context.Context, op string, err error) error {
	subject := "cloud " + s.subject
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if again, ok := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err); ok {
		err = again.ErrReauth
	}
	if status, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		return statusError(op, subject, status)
	}
	if lacks, ok := errors.AsType[*noService](err); ok {
		return nf.E(nf.Unsupported, op, subject, lacks)
	}
	if errors.Is(err, errPlain) || errors.Is(err, outbound.ErrNotAllowed) {
		return nf.E(nf.Forbidden, op, subject, outbound.Plain(err))
	}
	if reason := outbound.Reason(err); reason != "" {
		return &nf.Error{Kind: nf.Unreachable, Op: op, Subject: subject, Reason: reason, Err: outbound.Plain(err)}
	}
	if kind, ok := errors.AsType[*nf.Error](err); ok {
		return kind
	}
	return &nf.Error{Kind: nf.Unreachable, Op: op, Subject: subject, Reason: nf.ReasonUnavailable, Err: outbound.Plain(err)}
}

// statusError returns the error of a response.
func statusError(op, subject string, status gophercloud.ErrUnexpectedResponseCode) error {
	kind, message := readFault(status.Body)
	e := &nf.Error{Kind: nf.Failed, Op: op, Subject: subject, Err: fmt.Errorf("the response is %d %s", status.Actual, http.StatusText(status.Actual))}
	if message != "" {
		e.Err = fmt.Errorf("%w: %s", e.Err, message)
	}
	switch code := status.Actual; {
	case kind == "OverQuota", code == http.StatusRequestEntityTooLarge:
		e.Kind = nf.TooLarge
	case code == http.StatusUnauthorized:
		e.Kind, e.Reason = nf.Forbidden, nf.ReasonUnauthorized
	case code == http.StatusForbidden:
		e.Kind = nf.Forbidden
	case code == http.StatusNotFound:
		e.Kind = nf.NotFound
	case code == http.StatusConflict:
		e.Kind = nf.Conflict
	case code == http.StatusTooManyRequests:
		e.Kind = nf.TooManyRequests
	case code >= http.StatusInternalServerError:
		e.Kind, e.Reason = nf.Unreachable, nf.ReasonUnavailable
	}
	return e
}

// maxMessage is the length in bytes of a cloud's message in an error.
const maxMessage = 500

// readFault returns the type and the message of an error. The services wrap them in an
// object of one field, each with another name.
func readFault(body []byte) (kind, message string) {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return "", ""
	}
	for _, one := range all {
		var fault struct{ Type, Message string }
		if json.Unmarshal(one, &fault) == nil && fault.Message != "" {
			return fault.Type, clip(fault.Message)
		}
	}
	return "", ""
}

// clip shortens a message of a cloud, and makes one line of it.
func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
