package rendertest

import "runtime"

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
