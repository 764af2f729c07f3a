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

// The codes by which MongoDB refuses a user.
const (
	codeUnauthorized = 13
	codeNotAuthentic = 18
)

// unreadable gives the failure of a database its kind.
func unreadable(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	reason := ""
	if server, ok := errors.AsType[mongo.ServerError](err); ok && (server.HasErrorCode(codeUnauthorized) || server.HasErrorCode(codeNotAuthentic)) {
		reason = "forbidden"
	}
	if errors.Is(err, rpctypes.ErrPermissionDenied) || errors.Is(err, rpctypes.ErrAuthFailed) || errors.Is(err, rpctypes.ErrUserEmpty) {
		reason = "forbidden"
	}
	return &nf.Error{Kind: nf.Unreachable, Op: op, Subject: subject, Reason: reason, Err: err}
}

// misshapen says what is wrong with a document. What the decoders say may repeat
// the values.
func misshapen(err error) string {
	if e, ok := errors.AsType[*bson.DecodeError](err); ok && len(e.Keys()) > 0 {
		return fmt.Sprintf("its field %s is of another type than it should be", strings.Join(e.Keys(), "."))
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("its field %s is of another type than it should be", e.Field)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is no JSON from byte %d on", e.Offset)
	}
	return "it is not of the form that it should be"
}
