package onapstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The codes with which MongoDB rejects a user.
const (
	codeUnauthorized = 13
	codeNotAuthentic = 18
)

// unreadable returns nf.Unreachable for a failed database call, with the reason
// "forbidden" if the user was rejected. It returns nil if err is nil.
func unreadable(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	reason := ""
	if server, ok := errors.AsType[mongo.ServerError](err); ok && (server.HasErrorCode(codeUnauthorized) || server.HasErrorCode(codeNotAuthentic)) {
		reason = nf.ReasonForbidden
	}
	if errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrAuthFailed) || errors.Is(err, rpctypes.ErrUserEmpty) {
		reason = nf.ReasonForbidden
	}
	return &nf.Error{Kind: nf.Unreachable, Op: op, Subject: subject, Reason: reason, Err: err}
}

// misshapen describes why a document cannot be decoded. It omits the decoder's
// own message, which may repeat values.
func misshapen(err error) string {
	if e, ok := errors.AsType[*bson.DecodeError](err); ok && len(e.Keys()) > 0 {
		return fmt.Sprintf("its field %s has the wrong type", strings.Join(e.Keys(), "."))
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("its field %s has the wrong type", e.Field)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is not valid JSON from byte %d on", e.Offset)
	}
	return "it has an unexpected form"
}
