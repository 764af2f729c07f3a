package budget

import "context"

// Share is the memory that one request reserves from a budget. It is not safe for
// concurrent use.
type Share struct {
	budget   *Budget
	most     int64 // maximum that it may reserve
	reserved int64 // guarded by the budget
}

// Reserve reserves n bytes. It returns nf.TooManyRequests if they do not become
// free within 10 seconds, and nf.Cancelled if the context ends.
func (s *Share) Reserve(ctx context.Context, n int64) error { return s.budget.reserve(ctx, s, n) }

// TryReserve reserves n bytes if they are free now.
func (s *Share) TryReserve(n int64) bool {
	reserved, _ := s.budget.try(s, n)
	return reserved
}

// Release releases n of the reserved bytes.
func (s *Share) Release(n int64) { s.budget.release(s, n) }

// Close releases everything. Closing it again has no effect.
func (s *Share) Close() { s.Release(s.reserved) }
