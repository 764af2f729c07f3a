package lease

import (
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
)

const renewals = 5 // renewals in the time of a lease

// Renewer renews a lease while work is done under it.
type Renewer struct {
	Lasts time.Duration // the time of the lease
	// Sole: no other process can declare the lease expired, so it is not lost however
	// late it is renewed.
	Sole bool

	// Renew changes the heartbeat; its context lasts for a third of the lease
	// time. It returns ErrLost if the lease no longer exists.
	Renew func(ctx context.Context) error
	// Lose is called when the lease is over, or could not be renewed for so long
	// that others may soon declare it expired. Work under the lease must stop at
	// once. Lose may be called from another goroutine, and twice.
	Lose func()
	// Renewed is called after each renewal, with the time at which it started.
	Renewed func(began time.Time)
	// Failed is called for each failed renewal.
	Failed func(err error)
	// Sleep waits for a time, or until there is work.
	Sleep func(ctx context.Context, d time.Duration)
}

// ValidUntil returns the time until which no process can declare a lease expired that
// was renewed at the given time or later. It leaves a margin for clocks that
// run at different speeds.
func ValidUntil(renewed time.Time, lasts time.Duration) time.Time { return renewed.Add(lasts * 2 / 3) }

// Run renews the lease until the context ends or the lease is lost. It
// treats the lease as renewed at the time of the call.
func (k Renewer) Run(ctx context.Context) {
	began := time.Now()
	late := time.AfterFunc(delay.Positive(time.Until(ValidUntil(began, k.Lasts))), func() {
		if !k.Sole {
			k.Lose()
		}
	})
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
			late.Reset(delay.Positive(time.Until(ValidUntil(began, k.Lasts))))
			k.Renewed(began)
		}
		k.Sleep(ctx, k.Lasts/renewals)
	}
}

func (k Renewer) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.Lasts/3)
	defer cancel()
	return k.Renew(ctx)
}
