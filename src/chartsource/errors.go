package chartsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// fail returns an nf.Error with the kind of a failure. ctx is the caller's
// context, which may have ended.
func fail(ctx context.Context, subject string, err error) error {
	e := &nf.Error{Op: "fetch", Subject: subject}
	known, ok := errors.AsType[*nf.Error](err)
	refused, answered := errors.AsType[*errcode.ErrorResponse](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Kind, e.Err = nf.Timeout, context.Cause(ctx)
	case ctx.Err() != nil:
		e.Kind, e.Err = nf.Cancelled, context.Cause(ctx)
	case ok:
		e.Kind, e.Reason, e.Err = known.Kind, known.Reason, known
	case nf.ViolationsOf(err) != nil:
		e.Kind, e.Err = nf.Invalid, nf.ViolationsOf(err)
	case answered:
		return fail(ctx, subject, refusal(refused.StatusCode))
	case errors.Is(err, errdef.ErrNotFound):
		e.Kind = nf.NotFound
	default:
		e.Kind, e.Reason, e.Err = nf.Unreachable, cmp.Or(outbound.Reason(err), nf.ReasonUnavailable), outbound.Plain(err)
	}
	return e
}

// refusal returns the error for an HTTP status.
func refusal(status int) error {
	e := &nf.Error{Kind: nf.Unreachable, Op: "use", Subject: "its source", Err: fmt.Errorf("it responded %d %s", status, http.StatusText(status))}
	switch status {
	case http.StatusNotFound, http.StatusGone:
		e.Kind = nf.NotFound
	case http.StatusUnauthorized:
		e.Reason, e.Err = nf.ReasonUnauthorized, errCredentials
	case http.StatusForbidden:
		e.Reason, e.Err = nf.ReasonForbidden, errCredentials
	default:
		e.Reason = nf.ReasonUnavailable
	}
	return e
}
