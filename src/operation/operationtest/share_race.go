//go:build race

package operationtest

// share: with the race detector, which makes the tests much slower, one of so many
// faults is tried.
const share = 8
