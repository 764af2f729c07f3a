package seal_test

import (
	"bytes"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

// BenchmarkSeal compares a sealed store with a plain one, for a record and for a
// chunk.
func BenchmarkSeal(b *testing.B) {
	stores := map[string]store.KV{"plain": memory.New(), "sealed": seal.New(memory.New(), generate(b))}
	sizes := map[string]int{"2KiB": 2 << 10, "256KiB": 256 << 10}
	for kind, kv := range stores {
		for size, n := range sizes {
			value := bytes.Repeat([]byte("x"), n)
			b.Run("Put/"+size+"/"+kind, func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					if _, err := kv.Put(b.Context(), size, value, store.Any); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("Get/"+size+"/"+kind, func(b *testing.B) {
				put(b, kv, size, string(value))
				b.SetBytes(int64(n))
				for b.Loop() {
					if _, err := kv.Get(b.Context(), size); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
