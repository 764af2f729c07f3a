package operation

import (
	"context"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Work is what one attempt at an operation has to do. Each kind has its own.
type Work interface {
	// Bind makes the subject's lock this attempt's (Locks.Bind), and reports
	// whether the subject is locked by the operation. A subject that is not stays
	// as it is, and need not exist.
	Bind(ctx context.Context) (locked bool, err error)
	// Steps returns the operation's steps, in order.
	Steps(ctx context.Context) ([]Step, error)
	// Release unlocks the subject, in a state that shows the operation's failure,
	// or its success unless a step has already done so. It is idempotent.
	Release(ctx context.Context) error
	// Failure describes an error of the step, without secrets.
	Failure(ctx context.Context, step string, err error) *nf.Failure
}

// Undoer is Work that can be undone.
type Undoer interface {
	// Undoable reports whether the failed operation is to be undone: its request
	// asks for that, and there is a state to return to.
	Undoable(ctx context.Context) (bool, error)
	// UndoSteps returns the steps that undo the operation.
	UndoSteps(ctx context.Context) ([]Step, error)
}

// Waiter is Work that waits for something that is away, such as a region.
type Waiter interface {
	// WaitReason returns what a step that failed has to wait for, without secrets,
	// or nil if the step has failed.
	WaitReason(err error) *nf.Wait
	// Reopen is called before a step that has waited is repeated.
	Reopen(ctx context.Context) error
}

// Step is one part of an operation. It may be restarted after a crash at any
// point, so it must be idempotent.
type Step struct {
	nf.Step // its identity and progress

	// Recorded: the operation's record names the step before it runs, so that a
	// replica that resumes the operation knows that it may have run. Without it, what
	// the record says may be older, by at most a second.
	Recorded bool
	Do       func(context.Context) error
}

// storeError is an error for which IsStoreError reports true.
type storeError struct{ error }

func (u storeError) Unwrap() error { return u.error }

// IsStoreError reports whether an error is a failure to read or write the
// operation's records: the operation has not failed, and must be resumed.
func IsStoreError(err error) bool { return errors.As(err, new(storeError)) }

// RecordError marks a transient error of the store for IsStoreError. Other errors,
// such as a record that is too large, are ordinary failures.
func RecordError(err error) error {
	if kind := nf.KindOf(err); kind == nf.Unreachable || kind == nf.Conflict {
		return storeError{err}
	}
	return err
}
