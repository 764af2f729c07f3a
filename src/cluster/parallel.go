package cluster

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// each calls do for 0 to n-1, at most bound at a time. After an error it starts
// no more calls, waits for those in progress, and returns the error with the
// lowest index.
func each(bound, n int, do func(i int) error) error {
	var (
		group  errgroup.Group
		failed atomic.Bool
		errs   = make([]error, n)
	)
	group.SetLimit(bound)
	for i := range n {
		if failed.Load() {
			break
		}
		group.Go(func() error {
			if failed.Load() {
				return nil
			}
			if errs[i] = do(i); errs[i] != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, by index
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// tryEach calls do for 0 to n-1, at most bound at a time, until the context
// ends, and returns each call's error.
func tryEach(ctx context.Context, bound, n int, do func(i int) error) []error {
	errs := make([]error, n)
	_ = each(bound, n, func(i int) error {
		errs[i] = do(i)
		return ctx.Err()
	})
	return errs
}
