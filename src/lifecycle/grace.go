package lifecycle

import (
	"context"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// gracePause is the time between two searches for pods that are being deleted.
const gracePause = time.Second

// hasten gives the pods below the refs that are being deleted the grace period of the
// operation, if it has one, until the returned function is called. A controller deletes
// them, with their own grace period, some time after its object. If that period is
// shorter, it stays.
func (a *applier) hasten(ctx context.Context, refs []nf.Ref) (stop func()) {
	op := a.run.op()
	if op.Instance.Grace == nil {
		return func() {}
	}
	h := hastener{cluster: a.run.cluster, owner: op.Subject, refs: refs, grace: op.Instance.Grace, seen: map[string]bool{}}
	log := a.run.attempt.Log()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := h.run(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "failed to shorten the grace periods of pods", "error", err)
			}
			delay.For(ctx, gracePause, nil)
		}
	})
	return func() { cancel(); running.Wait() }
}

// hastener shortens the grace periods of pods.
type hastener struct {
	cluster Cluster
	owner   nf.Subject
	refs    []nf.Ref
	grace   *time.Duration
	seen    map[string]bool // UIDs of pods that have the grace period
}

// run gives the grace period to pods that are being deleted and do not have it.
func (h hastener) run(ctx context.Context) error {
	pods, err := h.cluster.Pods(ctx, h.owner, h.refs)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if p.Kind != "Pod" || p.Status != nf.StatusDeleting || h.seen[p.UID] {
			continue
		}
		pod := nf.HealPod{Ref: p.Ref, UID: p.UID, Workload: p.Workload}
		if _, err := h.cluster.Evict(ctx, h.owner, pod, nf.HealTask{Force: true, Grace: h.grace}); err != nil {
			return err
		}
		h.seen[p.UID] = true
	}
	return nil
}
