package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// request records which operation a client's key stands for.
type request struct {
	ID        string `json:"id"` // of this record
	Digest    string `json:"digest"`
	Operation string `json:"operation"`
	Replica   string `json:"replica"` // that was accepting it
}

// Standing says what became of the operation of a request with a key.
type Standing string

// What may have become of an operation.
const (
	Accepted Standing = "accepted" // its subject names or named it
	Pending  Standing = "pending"  // it is recorded, has not ended, and no subject names it yet
	Refused  Standing = "refused"  // it has ended as never accepted
	Unknown  Standing = "unknown"  // there is no such operation
)

// RequestID returns the id of a key's record. It is a hash, because keys are
// arbitrary text and belong to one client.
func RequestID(k nf.RequestKey) string {
	sum := sha256.Sum256([]byte(k.Client + "\x00" + k.Key))
	return hex.EncodeToString(sum[:])
}

// Repeated returns the operation that was accepted for a request with the same
// key, or "" if there is none. Standing tells what became of an operation. It
// returns nf.Conflict if another request was made under the key, and nf.Busy if
// the request is being accepted at this moment.
func (w *Workers) Repeated(ctx context.Context, k nf.RequestKey, standing func(ctx context.Context, operation string) (Standing, error)) (string, error) {
	if k.Key == "" {
		return "", nil
	}
	was, err := w.requests.Get(ctx, RequestID(k))
	if err != nil {
		return "", nf.IgnoreNotFound(err)
	}
	if was.Digest != k.Digest {
		return "", nf.OtherRequest("repeat", fmt.Sprintf("the request with key %q", k.Key))
	}
	// Order matters: a replica that is gone by now writes nothing after this
	// check.
	busy, err := w.accepting(ctx, was)
	if err != nil {
		return "", err
	}
	is, err := standing(ctx, was.Operation)
	switch {
	case err != nil:
		return "", err
	case is == Accepted:
		return was.Operation, nil
	case is == Pending, is == Unknown && busy:
		return "", beingAccepted(k)
	}
	// It was never accepted, and the replica that was accepting it is gone.
	err = w.requests.DeleteIf(ctx, RequestID(k), func(now request) error {
		if now != was {
			return nf.E(nf.Busy, "repeat", "the request", ErrTaken)
		}
		return nil
	})
	return "", nf.IgnoreNotFound(err)
}

// accepting reports whether a request may still be being accepted. It asks the
// store whether the replica is alive, because this one may not have seen a
// replica that has just joined.
func (w *Workers) accepting(ctx context.Context, r request) (bool, error) {
	if t := w.currentMembership(); t != nil && t.id == r.Replica {
		return w.Tracks(r.Operation), nil
	}
	if r.Replica == "" {
		return false, nil
	}
	return w.replicas.Has(ctx, r.Replica)
}

func beingAccepted(k nf.RequestKey) error {
	return &nf.Error{Kind: nf.Busy, Op: "repeat", Subject: fmt.Sprintf("the request with key %q", k.Key), Reason: nf.ReasonIdempotency,
		RetryAfter: time.Second, Err: errors.New("it is being accepted")}
}

// DeleteRequest deletes the record of an operation's key.
func (w *Workers) DeleteRequest(ctx context.Context, operation string, key nf.RequestKey) error {
	if key.Key == "" {
		return nil
	}
	return w.deleteRequest(ctx, RequestID(key), operation)
}

// deleteRequest deletes the record of a key, if the key stands for the operation.
func (w *Workers) deleteRequest(ctx context.Context, id, operation string) error {
	return w.requests.DeleteWhere(ctx, id, func(r request) bool { return r.Operation == operation })
}
