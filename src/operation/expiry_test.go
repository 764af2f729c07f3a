package operation_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/heaptest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// TestManyExpired has many operations be past their retention at once, as after it was
// shortened. One search deletes them all, and does not hold them in memory. The test is not
// parallel, because it measures the memory of the process.
func TestManyExpired(t *testing.T) {
	const number, size = 3_000, 8 << 10
	synctest.Test(t, func(t *testing.T) {
		g := &group{kv: memory.New()}
		operations := store.NewTable[nf.Operation](g.kv, "operations/", "operation")
		for i := range number {
			op := nf.Operation{
				ID: fmt.Sprintf("op-%04d", i), Subject: nf.Subject{Kind: kind, ID: "a"}, State: nf.Succeeded, Finished: time.Now().Add(-48 * time.Hour),
				Steps: make([]nf.Step, 1), Warnings: []string{strings.Repeat("x", size)},
			}
			if err := operations.Insert(t.Context(), op.ID, op); err != nil {
				t.Fatal(err)
			}
		}
		before := heaptest.InUse()
		var first sync.Once
		var held atomic.Int64
		g.join(t, sweeping(true, findsNothing), func(_ *operation.Config, k *operation.Kind) {
			k.Expire = func(context.Context, nf.Operation) error {
				first.Do(func() { held.Store(heaptest.InUse() - before) })
				return nil
			}
		}).run(t)
		pass(t, 2*time.Minute)
		if left := g.keys(t); len(left) > 0 {
			t.Errorf("%d records remain", len(left))
		}
		if most := int64(number * size / 4); held.Load() > most {
			t.Errorf("at the first deletion, the search holds %d bytes, want at most %d", held.Load(), most)
		}
	})
}
