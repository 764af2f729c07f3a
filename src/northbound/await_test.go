package northbound_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

func TestAwait(t *testing.T) {
	t.Parallel()
	begun, applied := nf.Operation{ID: "op-1", State: nf.Running}, nf.Operation{ID: "op-1", State: nf.Running, Applied: time.Unix(1, 0)}
	undone, failed := nf.Operation{ID: "op-1", State: nf.Running, Applied: time.Unix(1, 0), Undoing: true}, nf.Operation{ID: "op-1", State: nf.OperationFailed}
	lost := errors.New("the store is lost")
	cases := map[string]struct {
		reason  string
		changes []nf.Operation
		err     error // after the changes
		done    func(nf.Operation) bool
		stopped bool // the context has ended
		want    nf.Operation
		reached bool
	}{
		"Applied":   {"the wait ends when it is done", []nf.Operation{begun, applied, failed}, nil, northbound.Applied, false, applied, true},
		"Ended":     {"or later, if so wanted", []nf.Operation{begun, applied, failed}, nil, northbound.Ended, false, failed, true},
		"Failed":    {"an operation that ends is never done", []nf.Operation{begun, failed}, nil, northbound.Applied, false, failed, true},
		"Undone":    {"nor is one that is being undone", []nf.Operation{undone, failed}, nil, northbound.Applied, false, failed, true},
		"Cut":       {"the latest state is returned", []nf.Operation{begun, applied}, nil, northbound.Ended, false, applied, false},
		"Lost":      {"so is an error", []nf.Operation{begun}, lost, northbound.Ended, false, begun, false},
		"Stopped":   {"without time, nothing is awaited", []nf.Operation{failed}, nil, northbound.Ended, true, nf.Operation{ID: "op-1"}, false},
		"Unstarted": {"an error without time is the end of the time", nil, lost, northbound.Ended, true, nf.Operation{ID: "op-1"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if tc.stopped {
				stop()
			}
			follow := func(context.Context, string) iter.Seq2[nf.Operation, error] {
				return func(yield func(nf.Operation, error) bool) {
					for _, op := range tc.changes {
						if !yield(op, nil) {
							return
						}
					}
					if tc.err != nil {
						yield(nf.Operation{}, tc.err)
					}
				}
			}
			got, reached, err := northbound.Await(ctx, nf.Operation{ID: "op-1"}, follow, tc.done)
			if got.State != tc.want.State || got.Applied != tc.want.Applied || got.ID != tc.want.ID || reached != tc.reached || (err != nil) != (tc.err != nil && !tc.stopped) {
				t.Errorf("%s: %+v, %t, %v", tc.reason, got, reached, err)
			}
		})
	}
}
