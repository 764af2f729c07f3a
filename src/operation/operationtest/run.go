package operationtest

import (
	"context"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// Run runs workers until the test ends, or the returned function is called.
func Run(t *testing.T, work *operation.Workers) (stop func()) {
	t.Helper()
	if err := work.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = work.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}
