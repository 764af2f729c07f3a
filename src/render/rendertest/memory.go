package rendertest

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Allocated returns how many bytes fn allocates, whether or not it keeps them.
// That is more than fn holds at any time, but depends neither on the speed of
// the machine nor on the garbage collector. Allocations of other goroutines
// count too, so the calling test must not be parallel.
func Allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Peak returns the maximum number of bytes in use while fn ran, minus those in
// use before. It collects garbage continuously and measures the live heap. The
// result is at most a tenth above what fn held at any time. It is lower if fn
// held it for less time than a collection takes. Allocations of other
// goroutines count too, so the calling test must not be parallel.
func Peak(fn func()) uint64 {
	// Memory that is allocated during a collection counts as in use.
	const tenth = 10
	defer debug.SetGCPercent(debug.SetGCPercent(tenth))
	before := live()
	peak := before
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				peak = max(peak, live())
			}
		}
	})
	fn()
	close(done)
	wait.Wait()
	return peak - before
}

// live returns how many bytes are live after a garbage collection.
func live() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
