package network_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// ensured holds the network for an instance, and waits while it is being created.
func ensured(t *testing.T, s *shared.Resources, spec string, holder nf.Holder) error {
	t.Helper()
	wanted := request().Resource
	wanted.Spec = json.RawMessage(spec)
	for {
		err := s.Ensure(t.Context(), wanted, holder)
		id := nf.OperationOf(err)
		if id == "" {
			return err
		}
		op, err := s.Operations().Operation(t.Context(), oam, id)
		for ; err == nil && !op.State.Final(); op, err = s.Operations().Operation(t.Context(), oam, id) {
			<-time.After(time.Second) // fake time; only one goroutine of a bubble may call synctest.Wait
		}
		if err != nil {
			return err
		}
		if op.Failure != nil {
			return fmt.Errorf("the operation failed: %s", op.Failure.Message)
		}
	}
}

// TestEnsure holds a network that exists, or not, or is another one.
func TestEnsure(t *testing.T) {
	const a, b = `{"wires":["a"]}`, `{"wires":["b"]}`
	cases := map[string]struct {
		reason  string
		present string // spec of the network; empty: none
		holds   bool   // already
		wanted  string
		kind    nf.Kind // of the error; Internal: none
		count   int
	}{
		"Absent":   {reason: "it is created", wanted: a, count: 1},
		"Equal":    {reason: "it is held", present: a, wanted: a, count: 2},
		"Other":    {reason: "another network is not held", present: b, wanted: a, kind: nf.Exists, count: 1},
		"Held":     {reason: "a network that was changed after it was held remains in use", present: b, holds: true, wanted: a, count: 2},
		"Repeated": {reason: "a holder counts once", present: a, holds: true, wanted: a, count: 2},
		"Wrong":    {reason: "a wrong spec creates nothing", wanted: `{"wires":3}`, kind: nf.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld()
				s, _ := w.start(t)
				if tc.present != "" {
					w.create(t, s, request(func(r *nf.SharedRequest) { r.Resource.Spec = json.RawMessage(tc.present) }))
				}
				if tc.holds {
					_, err := s.Use(t.Context(), oam, instance("vnf-1"))
					must(t, err)
				}
				err := ensured(t, s, tc.wanted, instance("vnf-1"))
				if tc.kind == nf.Internal && err != nil || tc.kind != nf.Internal && nf.KindOf(err) != tc.kind {
					t.Errorf("%s: %v", tc.reason, err)
				}
				if got := count(t, s); got != tc.count {
					t.Errorf("%s: it has %d holders, want %d", tc.reason, got, tc.count)
				}
			})
		})
	}
}

// TestEnsureAtOnce lets 100 instances create one network at once. There is one network,
// until the last of them leaves.
func TestEnsureAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if err := ensured(t, s, `{"wires":["a"]}`, instance(fmt.Sprintf("vnf-%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := count(t, s); got != 100 || len(w.applied()) != 1 {
			t.Errorf("%d hold the network, and the region has %v", got, w.applied())
		}
		for i := range 100 {
			all.Go(func() {
				err := s.Leave(t.Context(), oam, instance(fmt.Sprintf("vnf-%d", i)))
				for ; nf.OperationOf(err) != ""; err = s.Leave(t.Context(), oam, instance(fmt.Sprintf("vnf-%d", i))) {
					<-time.After(time.Second)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		<-time.After(time.Minute)
		if got := state(t, s); got != "" || len(w.applied()) > 0 || len(w.held) > 0 {
			t.Errorf("the network is %q, with %v in the region, which %v hold", got, w.applied(), w.held)
		}
	})
}

// ensure is a request of an instance that creates the network.
func ensure(ctx context.Context, s *shared.Resources, _ nf.RequestKey) (nf.Operation, error) {
	err := s.Ensure(ctx, request().Resource, instance("vnf-1"))
	if id := nf.OperationOf(err); id != "" {
		return s.Operations().Operation(ctx, oam, id)
	}
	if err != nil {
		return nf.Operation{}, err
	}
	n, err := s.Get(ctx, oam)
	if err != nil {
		return nf.Operation{}, err
	}
	return s.Operations().Operation(ctx, oam, n.Last)
}
