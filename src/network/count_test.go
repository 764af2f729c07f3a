package network_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestCounts counts the networks by region, driver and state while Run runs.
func TestCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld()
		s, _ := w.start(t)
		if got := s.Counts(); got != nil {
			t.Errorf("nothing was counted, but there are %v", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { must(t, s.Run(ctx)) })
		defer running.Wait()
		defer stop()
		for _, name := range []string{"oam", "lan"} {
			w.create(t, s, request(func(r *nf.SharedRequest) { r.Resource.Name = name }))
		}
		<-time.After(time.Minute)
		want := []nf.SharedCount{{Region: "edge", Driver: "plain", State: nf.SharedActive, Number: 2}}
		if diff := cmp.Diff(want, s.Counts()); diff != "" {
			t.Errorf("the counts (-want +got):\n%s", diff)
		}
	})
}
