// Package heaptest measures the memory of a test.
//
// It does not say who holds the memory: a test that uses it must not be parallel. It
// measures no peak; package rendertest does.
package heaptest

import "runtime"

// InUse returns the number of bytes of the heap that are in use after a collection of
// garbage.
func InUse() int64 {
	runtime.GC()
	runtime.GC() // the first one only moves what is in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
