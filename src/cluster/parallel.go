package cluster

import (
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// each calls do for 0 to n-1, at most bound at once. After an error it begins
// no more, lets those under way finish, and returns the error of the lowest
// number.
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
	_ = group.Wait() // the errors are in errs, by number
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
