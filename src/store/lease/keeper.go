package lease

import (
	"context"
	"errors"
	"time"
)

const beats = 5 // in the time of a lease

// Keeper renews a lease for as long as somebody works under it.
type Keeper struct {
	Lasts time.Duration // the time of the lease

	// Renew moves the beat; its context lasts for a third of the lease's time. It
	// is ErrLost when there is nothing to renew any more.
	Renew func(ctx context.Context) error
	// Lose is told that the lease is over, or could not be renewed for so long
	// that others may soon think so. What is done under the lease must stop at
	// once. It may be called from another goroutine, and twice.
	Lose func()
	// Renewed is called after each renewal, with the time it was begun at.
	Renewed func(began time.Time)
	// Failed is told of each renewal that went wrong.
	Failed func(err error)
	// Rest waits for a time, or for as long as there is nothing to do.
	Rest func(ctx context.Context, d time.Duration)
}

// Sure returns until when nobody takes the holder of a lease for dead that was
// renewed at a time, or a little later; with a margin for clocks that do not run
// alike.
func Sure(renewed time.Time, lasts time.Duration) time.Time { return renewed.Add(lasts * 2 / 3) }

// Keep renews the lease until the context ends or it is lost. A lease counts as
// new when Keep is called.
func (k Keeper) Keep(ctx context.Context) {
	began := time.Now()
	late := time.AfterFunc(time.Until(Sure(began, k.Lasts)), k.Lose)
	defer late.Stop()
	for ctx.Err() == nil {
		began = time.Now()
		err := k.renew(ctx)
		switch {
		case errors.Is(err, ErrLost):
			k.Lose()
			return
		case ctx.Err() != nil:
			return
		case err != nil:
			k.Failed(err)
		default:
			late.Reset(time.Until(Sure(began, k.Lasts)))
			k.Renewed(began)
		}
		k.Rest(ctx, k.Lasts/beats)
	}
}

// Rest waits for a time, until the context ends, or until somebody calls, and
// reports whether somebody did.
func Rest(ctx context.Context, d time.Duration, called <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-called:
		return true
	}
	return false
}

func (k Keeper) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.Lasts/3)
	defer cancel()
	return k.Renew(ctx)
}
