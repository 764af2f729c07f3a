package aaisource_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestWatchOfRefusedKind has a region that does not list the virtual machines.
func TestWatchOfRefusedKind(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    error
		known  bool // the pods of an instance
	}{
		"unsupported": {"the region does not have the kind", nf.E(nf.Unsupported, "watch", "VirtualMachineInstance objects", nil), true},
		"forbidden": {
			"the account of the region may not list the kind",
			&nf.Error{Kind: nf.Failed, Reason: nf.ReasonForbidden, Op: "watch", Subject: "VirtualMachineInstance objects"}, true,
		},
		"no token": {
			"the account may not have a token, so nothing is known",
			&nf.Error{Kind: nf.Unreachable, Reason: nf.ReasonForbidden, Op: "watch", Subject: "VirtualMachineInstance objects"}, false,
		},
		"unreachable": {"the region may list them later", nf.E(nf.Unreachable, "watch", "VirtualMachineInstance objects", nil), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.refuses["VirtualMachineInstance"] = tc.err
				s := w.source(t, all())
				ctx, cancel := context.WithCancel(t.Context())
				var watching sync.WaitGroup
				watching.Go(func() { s.Watch(ctx) })
				defer watching.Wait()
				defer cancel()
				subjects(t, s)
				synctest.Wait()
				if live := subjects(t, s)["instances/fox"].Live; (live != "") != tc.known {
					t.Errorf("%s: the pods are %q", tc.reason, live)
				}
			})
		})
	}
}
