package cluster

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Watch yields the status of each target, at once and whenever it changes,
// until the loop stops or the context ends. It skips a status of an older
// generation than the target's, or of another uid. A workload whose pods cannot
// start (image pull, crash loop, quota) is nf.StatusFailed with the pod's
// message. Watch reads pods, replica sets and events only if the loop has not
// stopped after explainAfter, or if a target has Former: then it is nf.InProgress until its
// status does not count those pods. It yields nf.Current once for an applied object of a
// kind without a status, such as a ConfigMap, and does not watch it. A status that
// counts only after a time (readiness.Wait) is yielded when the time has passed, and
// nf.InProgress before. So is a failure that counts only if it lasts for recoveryTime: one of
// a target with nf.Unchanged, or an exceeded progress deadline, from before the apply; and a
// container whose ConfigMap or Secret is missing. The health of a StatefulSet names a pod
// that blocks its rollout.
//
// An error ends the sequence. If the region becomes unreachable after the first
// list, Watch waits until its circuit breaker opens. Then it ends with nf.Unreachable,
// reason "breaker". If the region is deregistered or gets another
// kubeconfig, the sequence ends with nf.Unreachable, reason "replaced". If the region
// no longer serves the version of a kind that is watched, but serves another one, it ends
// with nf.Unreachable, reason "unavailable". When the sequence has ended, all its
// goroutines have stopped.
func (c *Cluster) Watch(ctx context.Context, owner nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error] {
	return func(yield func(nf.Health, error) bool) {
		var refs []nf.Ref
		var watched []nf.Change
		for _, t := range targets {
			if !isCurrent(t) {
				refs, watched = append(refs, t.Ref), append(watched, t)
			} else if !yield(currentHealth(t), nil) {
				return
			}
		}
		found, err := c.client.apis.resolveAll(ctx, refs)
		if err != nil {
			yield(nf.Health{}, err)
			return
		}
		set := newStreamSet(c.client, owner)
		set.addHealth(found, watched)
		set.watch(ctx, watched, yield)
	}
}

// streamSet is a view, and the streams that keep it up to date: one per kind
// and namespace.
type streamSet struct {
	client  *client
	view    *view
	streams []*stream
}

func newStreamSet(c *client, owner nf.Subject) *streamSet {
	return &streamSet{client: c, view: newView(owner, c.apis.rules)}
}

// add returns the stream of a scope. A new one only explains (aside).
func (s *streamSet) add(p scope, q query) *stream {
	for _, known := range s.streams {
		if known.scope.key() == p.key() {
			return known
		}
	}
	added := &stream{client: s.client, view: s.view, scope: p, query: q, aside: true, known: map[string]int64{}}
	s.streams = append(s.streams, added)
	return added
}

// addTarget adds the stream of a scope that reports the target with the key.
func (s *streamSet) addTarget(p scope, q query, key string) {
	added := s.add(p, q)
	added.aside, added.keys = false, append(added.keys, key)
}

// addHealth adds the streams for the health of the targets: those of their own
// kinds, and those that explain their workloads. A target whose kind is not
// served is marked in the view as changed at once, and is absent.
func (s *streamSet) addHealth(targets []target, changes []nf.Change) {
	mine := query{labels: ownedBy(s.view.owner)}
	for i, t := range targets {
		if !t.served {
			s.view.markChanged([]string{t.ref.Key()})
			continue
		}
		s.addTarget(t.kind.in(t.ref.Namespace), mine, t.ref.Key())
		s.view.categories[t.kind.GroupKind()] = t.kind.categories
		if changes[i].Action == nf.Deleted || runs(t.kind.GroupKind()) == "" {
			continue
		}
		below := []*stream{s.add(podKind.in(t.ref.Namespace), mine)}
		s.add(eventKind.in(t.ref.Namespace), query{fields: relevantEvents})
		if runs(t.kind.GroupKind()) == "Deployment" {
			below = append(below, s.add(replicaSetKind.in(t.ref.Namespace), mine))
		}
		for _, one := range below {
			one.aside = one.aside && len(changes[i].Former) == 0
		}
	}
}

// explainAfter is how long streams that only explain are not started. Most
// workloads become ready in that time.
const explainAfter = time.Second

// relevantEvents selects warning events, except frequent ones that only repeat what
// the status of a pod says.
const relevantEvents = "type=Warning,reason!=Unhealthy,reason!=BackOff"

// start starts the streams that explain, or the others.
func (s *streamSet) start(ctx context.Context, running *sync.WaitGroup, aside bool) {
	for _, one := range s.streams {
		if one.aside == aside {
			running.Go(func() { one.run(ctx) })
		}
	}
}

// run runs the streams, and calls changed whenever the view has changes, until
// that returns false. If the context or the cluster ends first, run returns the
// context's error or errReplaced. The streams have stopped when it returns.
func (s *streamSet) run(ctx context.Context, changed func() bool) error {
	var running sync.WaitGroup
	defer s.client.transport.closeIdle()
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.start(ctx, &running, false)
	explain := time.NewTimer(explainAfter)
	defer explain.Stop()
	due := time.NewTimer(time.Hour) // a status counts only after a time
	due.Stop()
	defer due.Stop()
	for {
		select {
		case <-explain.C:
			s.start(ctx, &running, true)
		case <-due.C:
			s.view.markDue()
		case <-ctx.Done():
			return ctx.Err()
		case <-s.client.transport.closed:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errReplaced
		case <-s.view.wake:
			if !changed() {
				return nil
			}
			s.view.wakeWhenDue(due)
		}
	}
}

// watch observes how long statuses last, runs the streams, and yields the health
// of the targets, until yield returns false, or the context or the cluster ends.
func (s *streamSet) watch(ctx context.Context, targets []nf.Change, yield func(nf.Health, error) bool) {
	s.view.observe()
	err := s.run(ctx, func() bool { return s.view.report(targets, yield) })
	if errors.Is(err, errReplaced) {
		yield(nf.Health{}, s.client.region.fail(ctx, "watch", "objects", err))
	}
}

// report yields the changes of the view, and reports whether to continue.
func (v *view) report(targets []nf.Change, yield func(nf.Health, error) bool) bool {
	changed, err := v.take()
	for _, t := range targets {
		if !changed[t.Key()] {
			continue
		}
		if h, ok := v.of(t); ok && h != v.reported[t.Key()] {
			v.reported[t.Key()] = h
			if !yield(h, nil) {
				return false
			}
		}
	}
	if err != nil {
		yield(nf.Health{}, err)
	}
	return err == nil
}
