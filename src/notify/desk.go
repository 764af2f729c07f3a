package notify

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// desk serves the subscriptions of one region, and follows for all of them
// together the kinds that they need.
type desk struct {
	n      *Notifier
	region string
	scene  *scene
	called chan struct{} // holds a token when there is something to arrange

	mu       sync.Mutex
	assigned map[string]record   // subscriptions to serve, by uid
	kinds    map[string][]nf.Ref // that each needs

	// run alone uses these.
	services map[string]*serving
	follows  map[string]context.CancelFunc // by kindKey
	surveyed time.Time
}

// serving is a service that runs.
type serving struct {
	*service

	rec  record
	stop context.CancelFunc
	over chan struct{} // closed when it has ended
}

func newDesk(n *Notifier, region string) *desk {
	return &desk{
		n: n, region: region, scene: newScene(), called: make(chan struct{}, 1), surveyed: n.now(),
		assigned: map[string]record{}, kinds: map[string][]nf.Ref{},
		services: map[string]*serving{}, follows: map[string]context.CancelFunc{},
	}
}

// assign says which subscriptions there are.
func (d *desk) assign(recs []record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.assigned = map[string]record{}
	for _, rec := range recs {
		d.assigned[rec.UID] = rec
	}
	for uid := range d.kinds {
		if _, ok := d.assigned[uid]; !ok {
			delete(d.kinds, uid)
		}
	}
	rouse(d.called)
}

// want says which kinds a subscription needs.
func (d *desk) want(uid string, kinds []nf.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.assigned[uid]; !ok || slices.Equal(d.kinds[uid], kinds) {
		return
	}
	d.kinds[uid] = kinds
	rouse(d.called)
}

// wanted returns what there is to serve and to follow.
func (d *desk) wanted() (map[string]record, map[string]nf.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kinds := map[string]nf.Ref{}
	for _, list := range d.kinds {
		for _, k := range list {
			kinds[kindKey(k)] = k
		}
	}
	return d.assigned, kinds // assign makes a new map each time
}

// run serves until the context ends.
func (d *desk) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		recs, kinds := d.wanted()
		d.staff(ctx, recs, &running)
		d.watch(ctx, kinds, &running)
		d.survey()
		lease.Rest(ctx, d.n.cfg.Survey, d.called)
	}
}

// staff starts the services that there are subscriptions for, and stops others.
func (d *desk) staff(ctx context.Context, recs map[string]record, running *sync.WaitGroup) {
	for uid, s := range d.services {
		select {
		case <-s.over:
			delete(d.services, uid)
			continue
		default:
		}
		rec, ok := recs[uid]
		switch {
		case !ok:
			s.stop()
		case rec.Callback != s.rec.Callback || rec.MinInterval != s.rec.MinInterval:
			s.review()
			s.rec = rec
		}
	}
	for uid, rec := range recs {
		if d.services[uid] != nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		s := &serving{service: newService(d, rec), rec: rec, stop: stop, over: make(chan struct{})}
		d.services[uid] = s
		running.Go(func() {
			defer close(s.over)
			defer stop()
			defer d.n.attend(s.service)()
			s.run(ctx)
		})
	}
}

// watch follows the kinds, and no others.
func (d *desk) watch(ctx context.Context, kinds map[string]nf.Ref, running *sync.WaitGroup) {
	for key, stop := range d.follows {
		if _, ok := kinds[key]; !ok {
			stop()
			d.scene.close(key)
			delete(d.follows, key)
		}
	}
	for key, kind := range kinds {
		if d.follows[key] != nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		d.follows[key] = stop
		sh := d.scene.open(key)
		running.Go(func() {
			defer stop()
			d.follow(ctx, kind, sh)
		})
	}
}

// survey makes all services look again, now and then: an instance need not show
// that it has changed.
func (d *desk) survey() {
	if d.n.now().Sub(d.surveyed) < d.n.cfg.Survey {
		return
	}
	d.surveyed = d.n.now()
	for _, s := range d.services {
		s.review()
	}
}

// follow keeps a kind of the scene up to date until the context ends.
func (d *desk) follow(ctx context.Context, kind nf.Ref, sh *showing) {
	for failures := 0; ctx.Err() == nil; {
		d.scene.begin(sh)
		err := d.listen(ctx, kind, sh, &failures)
		if ctx.Err() != nil {
			return
		}
		failures++
		why := nf.KindOf(err)
		switch why {
		case nf.Unsupported:
			d.scene.none(sh, true) // they may come to be, with their definition
		case nf.Failed:
			d.scene.none(sh, false) // what we may not see must not keep all else from being told
		default:
		}
		if failures == 1 && why != nf.Unsupported {
			d.n.cfg.Logger.WarnContext(ctx, "changes in a region are not seen for now", "region", d.region, "kind", kind.Kind, "error", err)
		}
		lease.Rest(ctx, min(backoff(failures, random), d.n.cfg.Survey), nil)
	}
}

var errEnded = errors.New("the sequence has ended")

// listen takes in what one sequence tells, and returns how it ended. What was
// there whole is a success.
func (d *desk) listen(ctx context.Context, kind nf.Ref, sh *showing, failures *int) error {
	for e, err := range d.n.cfg.Source.Follow(ctx, d.region, kind) {
		if err != nil {
			return err
		}
		if e.Synced {
			*failures = 0
		}
		d.scene.take(sh, e)
	}
	return errEnded
}
