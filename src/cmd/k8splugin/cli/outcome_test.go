package cli

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// TestOutcome holds the exit codes of an operation's end.
func TestOutcome(t *testing.T) {
	failed := func(kind nf.Kind) operation {
		return operation{Operation: wire.Operation{State: nf.OperationFailed, Failure: &wire.Failure{Kind: kind, Message: "no"}}}
	}
	cases := map[string]struct {
		reason string
		op     operation
		want   int
	}{
		"Succeeded":   {"it did what it should", operation{Operation: wire.Operation{State: nf.Succeeded}}, 0},
		"Running":     {"it is not over", operation{Operation: wire.Operation{State: nf.Running}}, 0},
		"Cancelled":   {"it was stopped", operation{Operation: wire.Operation{State: nf.OperationCancelled}}, 1},
		"Failed":      {"a step failed", failed(nf.Failed), 1},
		"Conflict":    {"an accepted operation that fails is no refused request", failed(nf.Conflict), 1},
		"NotFound":    {"nor is the object that the command names missing", failed(nf.NotFound), 1},
		"Forbidden":   {"nor is the caller denied", failed(nf.Forbidden), 1},
		"Timeout":     {"it took too long", failed(nf.Timeout), 7},
		"Unreachable": {"its region is away", failed(nf.Unreachable), 6},
	}
	for name, tc := range cases {
		if got := ExitCode(tc.op.outcome()); got != tc.want {
			t.Errorf("%s: %s: exit code %d, want %d", name, tc.reason, got, tc.want)
		}
	}
}
