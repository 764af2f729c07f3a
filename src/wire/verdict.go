package wire

import (
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Test is one test of an instance.
type Test struct {
	Kind     string    `json:"kind"`
	Name     string    `json:"name"`
	Passed   *bool     `json:"passed,omitempty"` // nil: the test has not ended
	Message  string    `json:"message,omitempty"`
	Started  time.Time `json:"started_at"`
	Finished time.Time `json:"finished_at,omitzero"`
}

// Verdict reports whether the tests of an operation have passed. It returns nil
// if not all of them have run, or if the operation runs no tests.
func Verdict(op nf.Operation) *bool {
	failed := slices.ContainsFunc(op.Steps, func(s nf.Step) bool { return s.Failed && ofTest(s) })
	switch {
	case op.Verb != nf.Test:
	case op.State == nf.Succeeded:
		return new(true)
	case op.State == nf.OperationFailed && failed && op.Failure != nil && op.Failure.Kind == nf.Failed:
		return new(false)
	}
	return nil
}

// ofTest reports whether a step belongs to a test: deleting its old object,
// creating the object, or running the test.
func ofTest(s nf.Step) bool { return s.OfHook() && s.Event == nf.TestRun }

// testsOf returns the tests that an operation has started, according to its
// steps.
func testsOf(op nf.Operation) []Test {
	if op.Verb != nf.Test {
		return nil
	}
	out := []Test{}
	index := 0
	for _, s := range op.Steps {
		if !ofTest(s) {
			continue
		}
		if s.Index != index {
			index = s.Index
			out = append(out, Test{Kind: s.Ref.Kind, Name: s.Ref.Name, Started: s.Started})
		}
		t := &out[len(out)-1]
		if s.Failed && (t.Passed == nil || *t.Passed) {
			t.Passed, t.Message = new(false), s.Said().String()
		}
		if s.Phase != nf.PhaseHookWait || s.Finished.IsZero() {
			continue
		}
		if t.Finished = s.Finished; t.Passed == nil {
			t.Passed, t.Message = new(true), s.Said().String()
		}
	}
	return out
}
