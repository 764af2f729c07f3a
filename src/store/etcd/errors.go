package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// translate gives an error of etcd its kind. An end of the context is told as
// such, whatever etcd made of it.
func translate(ctx context.Context, op, subject string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		if !errors.Is(err, ended) {
			err = ended
		}
		return nf.E(nf.Unreachable, op, subject, err)
	}
	kind, reason := nf.Unreachable, ""
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		kind = nf.TooLarge
	case errors.Is(err, rpctypes.ErrNoSpace):
		reason = "no-space"
	case errors.Is(err, rpctypes.ErrCompacted):
		reason = "compacted"
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrInvalidAuthToken),
		errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthFailed):
		reason = "forbidden"
	}
	return &nf.Error{Kind: kind, Op: op, Subject: subject, Reason: reason, Err: err}
}
