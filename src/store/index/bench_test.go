package index_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/index"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// BenchmarkFind looks for an attribute that no record has, among few and among many.
func BenchmarkFind(b *testing.B) {
	for _, records := range []int{100, 50_000} {
		b.Run(strconv.Itoa(records), func(b *testing.B) {
			below := memory.New()
			table := store.NewTable[nf.Instance](below, prefix, "VNF instance")
			for i := range records {
				id := fmt.Sprintf("i%06d", i)
				if err := table.Insert(b.Context(), id, instance(id, i)); err != nil {
					b.Fatal(err)
				}
			}
			x, err := index.New(index.Config{KV: below, Tables: []index.Table{index.Of[nf.Instance](prefix)}})
			if err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(b.Context())
			var running errgroup.Group
			running.Go(func() error { return x.Run(ctx) })
			defer func() { stop(); _ = running.Wait() }()
			for !x.Status()["instances"].Filled {
				runtime.Gosched()
			}
			none := nf.Cursor{Where: []nf.Attribute{{Name: nf.AttributeRegion, Value: "none"}}}
			for b.Loop() {
				found, _ := x.Find(prefix, prefix, none)
				for key := range found {
					b.Fatalf("%s was found", key)
				}
			}
		})
	}
}
