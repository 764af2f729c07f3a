package sol003

import "context"

// carrier carries out the attempt at an occurrence on a VIM. Its methods are steps, which
// may run again after a crash.
type carrier interface {
	// begin begins the change, or finds the one that an earlier process has begun. It
	// records that with run.begun.
	begin(ctx context.Context) error
	// wait waits until the change ends.
	wait(ctx context.Context) error
	// observe records the components of the VNF.
	observe(ctx context.Context) error
	// active reports whether the attempt has begun a change, which stop has to stop.
	active(ctx context.Context) (bool, error)
	// stop stops the change of an attempt that has failed or was cancelled. If it has
	// succeeded all the same, stop records that.
	stop(ctx context.Context) error
}

// carrierOf returns what carries out the attempt: Heat on an OpenStack cloud. On a
// Kubernetes cluster, the run itself does, with operations of the engine.
func carrierOf(r *run) carrier {
	if stackedIn(r.record().Task) != nil {
		return heat{r}
	}
	return r
}

var _ carrier = (*run)(nil)

// active implements carrier.
func (r *run) active(ctx context.Context) (bool, error) {
	_, found, err := r.mine(ctx)
	return found, err
}
