package lifecycle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// request says which operation a client's key stands for.
type request struct {
	Digest    string `json:"digest"`
	Operation string `json:"operation"`
	Replica   string `json:"replica"` // who was accepting it
}

// reasonIdempotency is the reason why a key is refused.
const reasonIdempotency = "idempotency"

// requestID is where a key's record is: keys are any text, and clients'.
func requestID(k nf.RequestKey) string {
	sum := sha256.Sum256([]byte(k.Client + "\x00" + k.Key))
	return hex.EncodeToString(sum[:])
}

// repeated returns the operation that a request with the same key has been
// given already. Another request under the key is nf.Conflict; one that is
// being accepted at this moment is nf.Busy.
func (e *Engine) repeated(ctx context.Context, k nf.RequestKey) (op nf.Operation, found bool, err error) {
	if k.Key == "" {
		return op, false, nil
	}
	was, err := e.requests.Get(ctx, requestID(k))
	if err != nil {
		return op, false, nf.UnlessGone(err)
	}
	if was.Digest != k.Digest {
		return op, false, &nf.Error{Kind: nf.Conflict, Op: "repeat", Subject: fmt.Sprintf("the request with key %q", k.Key), Reason: reasonIdempotency,
			Err: errors.New("another request was made under this key")}
	}
	// First who is at it, and then how far it is: whoever is gone writes no more.
	busy, err := e.accepting(ctx, was)
	if err != nil {
		return op, false, err
	}
	op, err = e.operations.Get(ctx, was.Operation)
	if err != nil && nf.KindOf(err) != nf.NotFound {
		return op, false, err
	}
	switch heeded, e2 := e.heeded(ctx, op); {
	case e2 != nil:
		return op, false, e2
	case heeded:
		return op, true, nil
	case err == nil && !op.State.Final(), err != nil && busy:
		return op, false, beingAccepted(k)
	}
	// It was never accepted, and whoever was at it is gone.
	err = e.requests.DeleteIf(ctx, requestID(k), func(now request) error {
		if now != was {
			return nf.E(nf.Busy, "repeat", "the request", errTaken)
		}
		return nil
	})
	return op, false, nf.UnlessGone(err)
}

// once carries out a request, unless it has been already under the same key.
func (e *Engine) once(ctx context.Context, k nf.RequestKey, accept func() (nf.Operation, error)) (nf.Operation, error) {
	op, found, err := e.repeated(ctx, k)
	if found || err != nil {
		return op, err
	}
	op, err = accept()
	if err == nil || k.Key == "" {
		return op, err
	}
	// What is in the way may be the request's own twin, which came first.
	twin, found, unsure := e.repeated(ctx, k)
	switch {
	case found:
		return twin, nil
	case unsure != nil:
		return op, unsure // a refusal would be for good
	}
	if twin, found := e.instantiated(ctx, k); found {
		return twin, nil
	}
	return op, err
}

// instanceOf is the id of the instance that a request with a key makes: two
// processes that accept it at once, one of them taken for dead, cannot both
// make it.
func instanceOf(k nf.RequestKey) string { return requestID(k)[:16] }

// instantiated returns the operation of a request whose instance is there,
// whatever has become of the key's own record.
func (e *Engine) instantiated(ctx context.Context, k nf.RequestKey) (nf.Operation, bool) {
	in, err := e.instances.Get(ctx, instanceOf(k))
	if err != nil {
		return nf.Operation{}, false
	}
	op, err := e.operations.Get(ctx, in.LastOperation)
	return op, err == nil && op.Request == k
}

// accepting reports whether a request may still be on its way. Whether its
// replica lives is asked of the store: one that has just joined has not been
// seen here yet.
func (e *Engine) accepting(ctx context.Context, r request) (bool, error) {
	if t := e.present(); t != nil && t.id == r.Replica {
		return e.owns(r.Operation), nil
	}
	if r.Replica == "" {
		return false, nil
	}
	return e.replicas.Has(ctx, r.Replica)
}

// heeded reports whether an operation's request was accepted: its instance names
// it, or it has begun.
func (e *Engine) heeded(ctx context.Context, op nf.Operation) (bool, error) {
	switch {
	case op.ID == "", op.State.Final() && op.Failure != nil && op.Failure.Reason == reasonUnheeded:
		return false, nil
	case op.State.Final(), len(op.Steps) > 0:
		return true, nil
	}
	in, err := e.instances.Get(ctx, op.Instance)
	return err == nil && in.LastOperation == op.ID, nf.UnlessGone(err)
}

func beingAccepted(k nf.RequestKey) error {
	return &nf.Error{Kind: nf.Busy, Op: "repeat", Subject: fmt.Sprintf("the request with key %q", k.Key), Reason: reasonIdempotency,
		After: time.Second, Err: errors.New("it is being accepted")}
}

// keepRequest records which operation a key stands for, before the operation is,
// and returns which replica deals with it from then on: this one, as it is now.
// It is nf.Unreachable while this replica holds no lease.
func (e *Engine) keepRequest(ctx context.Context, op nf.Operation) (replica string, err error) {
	t := e.present()
	if t == nil {
		return "", nf.E(nf.Unreachable, "accept", "operation "+op.ID, errAbsent)
	}
	e.own(op.ID) // first: whoever finds the record asks who is at it
	if op.Request.Key == "" {
		return t.id, nil
	}
	err = e.requests.Insert(ctx, requestID(op.Request), request{Digest: op.Request.Digest, Operation: op.ID, Replica: t.id})
	switch {
	case nf.KindOf(err) == nf.Exists:
		e.disown(op.ID)
		return t.id, beingAccepted(op.Request)
	case err != nil:
		e.discard(ctx, op) // it may be there all the same
	}
	return t.id, err
}

// dropRequest forgets the key of an operation.
func (e *Engine) dropRequest(ctx context.Context, op nf.Operation) error {
	if op.Request.Key == "" {
		return nil
	}
	err := e.requests.DeleteIf(ctx, requestID(op.Request), func(r request) error {
		if r.Operation != op.ID {
			return errTaken
		}
		return nil
	})
	if errors.Is(err, errTaken) {
		return nil // the key stands for a later one
	}
	return nf.UnlessGone(err)
}
