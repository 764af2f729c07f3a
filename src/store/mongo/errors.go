package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The codes of the server that say why it does not do as it is told.
const (
	codeUnauthorized   = 13
	codeNotAuthentic   = 18
	codeOutOfDiskSpace = 14031
	codeTooLarge       = 10334
)

// translate gives an error of MongoDB its kind. An end of the context is told as
// such, whatever the driver made of it.
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
			reason = "forbidden"
		case server.HasErrorCode(codeOutOfDiskSpace):
			reason = "no-space"
		case server.HasErrorCode(codeTooLarge):
			kind = nf.TooLarge
		}
	}
	return &nf.Error{Kind: kind, Op: op, Subject: subject, Reason: reason, Err: err}
}

// isThere tells whether a write failed because the key is there. When a majority
// does not know of it yet, it may be gone again: then nobody knows.
func isThere(err error) bool {
	if !mongo.IsDuplicateKeyError(err) {
		return false
	}
	write, ok := errors.AsType[mongo.WriteException](err)
	return !ok || write.WriteConcernError == nil
}
