package aaisource

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	firstPause   = time.Second // after a watch has ended; doubled after each failure
	longestPause = 5 * time.Minute
)

// podKinds are the kinds that pods, or what counts as one, have.
func podKinds() []nf.Ref {
	return []nf.Ref{{Version: "v1", Kind: "Pod"}, {Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}}
}

// region is what the watches of a region have told.
type region struct {
	stop context.CancelFunc

	mu     sync.Mutex
	synced map[nf.Ref]bool
	pods   map[string]map[string]Mark // by instance and key of the pod
}

// live returns a text that changes with the pods of an instance; empty if the region is
// not watched yet.
func (s *Source) live(in nf.Instance) string {
	s.mu.Lock()
	r := s.watched[in.Region]
	s.mu.Unlock()
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.synced) < len(podKinds()) {
		return ""
	}
	var sum uint64 // of all pods, in any order
	for key, m := range r.pods[in.ID] {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, key, m.Stamp, m.Status)
		sum ^= h.Sum64()
	}
	return fmt.Sprintf("%d-%x", len(r.pods[in.ID]), sum)
}

// follow takes note of the regions of instances whose pods A&AI gets.
func (s *Source) follow(wanted map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(wanted, s.wanted) {
		s.wanted = wanted
		s.wake.Send()
	}
}

// Watch implements aaisync.Source.
func (s *Source) Watch(ctx context.Context) {
	var running sync.WaitGroup
	for ctx.Err() == nil {
		s.adjust(ctx, &running)
		delay.For(ctx, s.cfg.Every, s.wake)
	}
	s.mu.Lock()
	for _, r := range s.watched {
		r.stop()
	}
	s.watched, s.wanted = map[string]*region{}, map[string]bool{}
	s.mu.Unlock()
	running.Wait()
}

// adjust starts to watch regions that have subjects, and stops to watch the others.
func (s *Source) adjust(ctx context.Context, running *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.watched {
		if !s.wanted[id] {
			r.stop()
			delete(s.watched, id)
		}
	}
	for id := range s.wanted {
		if s.watched[id] != nil {
			continue
		}
		watching, stop := context.WithCancel(ctx)
		r := &region{stop: stop, synced: map[nf.Ref]bool{}, pods: map[string]map[string]Mark{}}
		s.watched[id] = r
		for _, kind := range podKinds() {
			running.Go(func() { s.watch(watching, id, kind, r) })
		}
	}
}

// watch follows one kind of pod in a region.
func (s *Source) watch(ctx context.Context, id string, kind nf.Ref, r *region) {
	for failures := 0; ctx.Err() == nil; {
		isSynced, err := r.census(kind, s.cfg.Regions.Census(ctx, id, kind))
		if isSynced {
			failures = 0
		}
		switch k := nf.KindOf(err); {
		case err == nil:
		case k == nf.Unsupported || k == nf.Failed && nf.ReasonOf(err) == nf.ReasonForbidden:
			r.sync(kind, nil) // it has, or shows, no pods of the kind
			failures++
		default:
			if failures++; failures == 1 && ctx.Err() == nil {
				s.cfg.Logger.WarnContext(ctx, "failed to watch the pods of a cloud region for A&AI; will retry", "region", id, "error", err)
			}
		}
		delay.For(ctx, delay.Doubled(firstPause, longestPause, failures), nil)
	}
}

// census follows one watch until it ends. It reports whether the watch was synced.
func (r *region) census(kind nf.Ref, marks iter.Seq2[Mark, error]) (isSynced bool, err error) {
	seen := make(map[[2]string]bool) // owners and keys, until the watch is synced
	for m, err := range marks {
		switch {
		case err != nil:
			return isSynced, err
		case m.Synced:
			r.sync(kind, seen)
			isSynced, seen = true, nil
		default:
			r.see(m)
			if !isSynced {
				seen[[2]string{m.Owner, m.Key}] = true
			}
		}
	}
	return isSynced, nil
}

// see takes note of a pod.
func (r *region) see(m Mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pods := r.pods[m.Owner]
	if m.Status == nf.Absent {
		delete(pods, m.Key)
		if len(pods) == 0 {
			delete(r.pods, m.Owner)
		}
		return
	}
	if pods == nil {
		pods = make(map[string]Mark)
		r.pods[m.Owner] = pods
	}
	pods[m.Key] = m
}

// sync forgets the pods of a kind that a complete list lacks: they were deleted while
// nothing was watched.
func (r *region) sync(kind nf.Ref, seen map[[2]string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced[kind] = true
	prefix, _, _ := strings.Cut(kind.Key(), "/")
	prefix += "/"
	for owner, pods := range r.pods {
		for key := range pods {
			if strings.HasPrefix(key, prefix) && !seen[[2]string{owner, key}] {
				delete(pods, key)
			}
		}
		if len(pods) == 0 {
			delete(r.pods, owner)
		}
	}
}
