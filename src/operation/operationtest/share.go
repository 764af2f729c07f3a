//go:build !race

package operationtest

// share: every fault is tried.
const share = 1
