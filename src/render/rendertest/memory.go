package rendertest

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Allocated returns how many bytes fn allocates, kept or not. It is more than fn
// holds at any time, and unlike that it depends neither on the speed of the
// machine nor on the garbage collector. Whatever runs meanwhile counts, so that
// a test which asks must not be parallel.
func Allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Peak returns the most bytes that were in use while fn ran, beyond those before:
// it collects garbage all the time, and looks what is left. That is at most a
// tenth more than fn held at any time, and less if fn held it for less time than
// a collection takes. Whatever else runs at the same time counts, so that a test
// which asks must not be parallel.
func Peak(fn func()) uint64 {
	// What is allocated during a collection counts as in use.
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

// live returns how many bytes a garbage collection has left.
func live() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
