package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Error codes of the server.
const (
	codeUnauthorized   = 13
	codeNotAuthentic   = 18
	codeOutOfDiskSpace = 14031
	codeTooLarge       = 10334
)

// translate returns an error of MongoDB with its kind. If the context has
// ended, the result wraps the error of the context, whatever the driver
// reports.
func translate(ctx context.Context, op, subject string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		if !errors.Is(err, ended) {
			err = errors.Join(ended, err)
		}
		return nf.E(nf.Unreachable, op, subject, err)
	}
	kind, reason := nf.Unreachable, ""
	if server, ok := errors.AsType[mongo.ServerError](err); ok {
		switch {
		case server.HasErrorCode(codeUnauthorized), server.HasErrorCode(codeNotAuthentic):
			reason = nf.ReasonForbidden
		case server.HasErrorCode(codeOutOfDiskSpace):
			reason = nf.ReasonNoSpace
		case server.HasErrorCode(codeTooLarge):
			kind = nf.TooLarge
		}
	}
	return &nf.Error{Kind: kind, Op: op, Subject: subject, Reason: reason, Err: err}
}

// isThere reports whether a write failed because the key exists. It returns
// false if a majority has not confirmed the key yet: the key may then be rolled
// back, so the result is unknown.
func isThere(err error) bool {
	if !mongo.IsDuplicateKeyError(err) {
		return false
	}
	write, ok := errors.AsType[mongo.WriteException](err)
	return !ok || write.WriteConcernError == nil
}
