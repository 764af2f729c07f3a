package notify

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// regionWatch watches the objects of one region. It follows each kind that the
// region's subscriptions need once, for all of them together.
type regionWatch struct {
	n       *Notifier
	region  string
	objects *objectCache
	wakeCh  delay.Signal // holds a token when kinds may have changed

	mu    sync.Mutex
	kinds map[string][]nf.Ref // that each subscription needs, by uid

	follows map[string]context.CancelFunc // by kindKey; only run uses it
}

func newRegionWatch(n *Notifier, region string) *regionWatch {
	return &regionWatch{
		n: n, region: region, objects: newObjectCache(), wakeCh: delay.NewSignal(),
		kinds: map[string][]nf.Ref{}, follows: map[string]context.CancelFunc{},
	}
}

// want sets the kinds that a subscription needs.
func (w *regionWatch) want(uid string, kinds []nf.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Equal(w.kinds[uid], kinds) {
		return
	}
	w.kinds[uid] = kinds
	if len(kinds) == 0 {
		delete(w.kinds, uid)
	}
	w.wakeCh.Send()
}

// wanted returns the kinds to follow.
func (w *regionWatch) wanted() map[string]nf.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := map[string]nf.Ref{}
	for _, list := range w.kinds {
		for _, k := range list {
			kinds[kindKey(k)] = k
		}
	}
	return kinds
}

// run follows the kinds until the context ends.
func (w *regionWatch) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		w.watch(ctx, w.wanted(), &running)
		delay.For(ctx, idle, w.wakeCh)
	}
}

// watch follows exactly the given kinds: it starts and stops the others as
// needed.
func (w *regionWatch) watch(ctx context.Context, kinds map[string]nf.Ref, running *sync.WaitGroup) {
	for key, stop := range w.follows {
		if _, ok := kinds[key]; !ok {
			stop()
			w.objects.close(key)
			delete(w.follows, key)
		}
	}
	for key, kind := range kinds {
		if w.follows[key] != nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		w.follows[key] = stop
		kc := w.objects.open(key)
		running.Go(func() {
			defer stop()
			w.follow(ctx, kind, kc)
		})
	}
}

// follow keeps one kind of the cache up to date until the context ends.
func (w *regionWatch) follow(ctx context.Context, kind nf.Ref, kc *kindCache) {
	for failures := 0; ctx.Err() == nil; {
		w.objects.begin(kc)
		err := w.applyEvents(ctx, kind, kc, &failures)
		if ctx.Err() != nil {
			return
		}
		failures++
		why := nf.KindOf(err)
		switch why {
		case nf.Unsupported:
			w.objects.markEmpty(kc, true) // the CRD may be created later
		case nf.Failed:
			w.objects.markEmpty(kc, false) // a kind that may not be read must not delay the other notifications
		default:
		}
		if failures == 1 && why != nf.Unsupported {
			w.n.cfg.Logger.WarnContext(ctx, "failed to watch the objects of a region; will retry", "region", w.region, "kind", kind.Kind, "error", err)
		}
		pause := delay.Doubled(time.Second, w.n.cfg.Survey, failures-1)
		delay.For(ctx, pause*3/4+rand.N(pause/4+1), nil)
	}
}

var errEnded = errors.New("the watch has ended")

// applyEvents applies the events of one sequence to the cache, and returns the error
// that ended it. It resets failures once the sequence has synced.
func (w *regionWatch) applyEvents(ctx context.Context, kind nf.Ref, kc *kindCache, failures *int) error {
	for e, err := range w.n.cfg.Source.Follow(ctx, w.region, kind) {
		if err != nil {
			return err
		}
		if e.Synced {
			*failures = 0
		}
		w.objects.apply(kc, e)
	}
	return errEnded
}
