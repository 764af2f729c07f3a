package cluster

import (
	"context"
	"net"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest/adversary"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// readingPaths are all ways in which an API server is read. Each returns when
// it is done; one that follows the region, when it is told something or when it
// fails. A new method of Cluster that reads belongs here.
func readingPaths() map[string]func(ctx context.Context, c *Cluster) error {
	const owner, ns = "vnf-1", "ns"
	one := func() []*unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
				"name": "web", "namespace": ns, "labels": map[string]any{nf.OwnerLabel: owner},
			},
		}}
		return []*unstructured.Unstructured{u}
	}
	two := func() []*unstructured.Unstructured {
		more := one()[0]
		more.SetName("web2")
		return append(one(), more)
	}
	refs := []nf.Ref{refOf(one()[0])}
	claim := nf.Claim{Labels: map[string]string{"app": "x"}}
	return map[string]func(ctx context.Context, c *Cluster) error{
		"Preflight": func(ctx context.Context, c *Cluster) error { return c.Preflight(ctx, owner, inside(ns), one()) },
		"Preflight of several": func(ctx context.Context, c *Cluster) error {
			return c.Preflight(ctx, owner, inside(ns), two())
		},
		"PreflightAdopt": func(ctx context.Context, c *Cluster) error {
			return c.PreflightAdopt(ctx, owner, inside(ns), claim, two())
		},
		"Diff":    func(ctx context.Context, c *Cluster) error { _, err := c.Diff(ctx, owner, one()); return err },
		"Apply":   func(ctx context.Context, c *Cluster) error { _, err := c.Apply(ctx, owner, one()); return err },
		"Delete":  func(ctx context.Context, c *Cluster) error { _, err := c.Delete(ctx, owner, refs); return err },
		"Orphan":  func(ctx context.Context, c *Cluster) error { _, err := c.Orphan(ctx, owner, refs); return err },
		"Adopt":   func(ctx context.Context, c *Cluster) error { _, err := c.Adopt(ctx, owner, claim, refs); return err },
		"Ensure":  func(ctx context.Context, c *Cluster) error { _, err := c.Ensure(ctx, one()); return err },
		"Health":  func(ctx context.Context, c *Cluster) error { _, err := c.Health(ctx, owner, refs); return err },
		"Read":    func(ctx context.Context, c *Cluster) error { _, err := c.Read(ctx, owner, refs); return err },
		"Unready": func(ctx context.Context, c *Cluster) error { _, _, err := c.Unready(ctx, owner, refs, 5); return err },
		"VolumeClaims": func(ctx context.Context, c *Cluster) error {
			_, err := c.VolumeClaims(ctx, owner, []nf.Ref{{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: ns, Name: "db"}}, nil)
			return err
		},
		"Find": func(ctx context.Context, c *Cluster) error {
			_, err := c.Find(ctx, Selection{APIVersion: "v1", Kind: "ConfigMap", Namespace: ns})
			return err
		},
		"Lookup": func(ctx context.Context, c *Cluster) error { _, err := c.Lookup(ctx, refs[0]); return err },
		"Lookup of all": func(ctx context.Context, c *Cluster) error {
			_, err := c.Lookup(ctx, nf.Ref{Version: "v1", Kind: "Secret"})
			return err
		},
		"Capabilities": func(ctx context.Context, c *Cluster) error { _, err := c.Capabilities(ctx); return err },
		"EnsureNamespace": func(ctx context.Context, c *Cluster) error {
			_, err := c.EnsureNamespace(ctx, ns, nf.DefaultProject)
			return err
		},
		"RemoveNamespace": func(ctx context.Context, c *Cluster) error { _, err := c.RemoveNamespace(ctx, ns); return err },
		"contents":        func(ctx context.Context, c *Cluster) error { _, err := c.contents(ctx, ns); return err },
		"namespaceGone":   func(ctx context.Context, c *Cluster) error { return c.namespaceGone(ctx, ns, "u") },
		"Watch": func(ctx context.Context, c *Cluster) error {
			for _, err := range c.Watch(ctx, owner, []nf.Change{{Ref: refs[0], UID: "u", Generation: 2}}) {
				return err
			}
			return ctx.Err()
		},
		"Follow": func(ctx context.Context, c *Cluster) error {
			l := NewLookout(func(context.Context, string) (*Cluster, error) { return c, nil })
			for _, err := range l.Follow(ctx, "east", nf.Ref{Version: "v1", Kind: "ConfigMap"}) {
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		},
		"check": func(ctx context.Context, c *Cluster) error { c.check(ctx); return nil },
		"probe": func(ctx context.Context, c *Cluster) error { _, err := c.probe(ctx); return err },
	}
}

// TestAdversary has every path meet every way in which an API server misbehaves:
// it ends by itself, has read little, holds nothing, and repeats nothing that
// another server has said.
func TestAdversary(t *testing.T) {
	const longEnough = 10 * time.Minute
	few := limits{
		turns: 8, watches: 8, large: 2, small: 16 << 10, answer: 1 << 20, survey: 2 << 20, event: 512 << 10, kept: 2 << 20, pace: 4 << 20,
		pages: 40, list: 4 << 20, restarts: 2, versions: 50,
	}
	// A path reads six kinds at most, and a page is tried in four sizes.
	most, mostAsked := 6*4*few.answer, int64(6*few.pages+200)
	for _, behavior := range adversary.Behaviors() {
		for path, read := range readingPaths() {
			t.Run(string(behavior)+"/"+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network := &pipes{conns: make(chan net.Conn), closed: make(chan struct{}), limits: few}
					server := adversary.New(behavior, "http://127.0.0.1:1/elsewhere")
					c := wired(t, network, server)
					ctx, cancel := context.WithTimeout(t.Context(), longEnough)
					defer cancel()
					err := read(ctx, c)
					// What follows a region may wait for news as long as it likes.
					patient := path == "Watch" || path == "Follow" || path == "namespaceGone" || path == "Ensure"
					if ctx.Err() != nil && !patient {
						t.Errorf("it did not end by itself: %v", err)
					}
					if sent := server.Sent(); sent > most {
						t.Errorf("it read %d KiB", sent>>10)
					}
					if asked := server.Requests(); asked > mostAsked {
						t.Errorf("it made %d requests", asked)
					}
					if err != nil && strings.Contains(err.Error(), adversary.Secret) {
						t.Errorf("it repeats what another server says: %v", err)
					}
					if kept := c.guard.share.kept.Load(); kept != 0 {
						t.Errorf("%d bytes are counted as held at the end", kept)
					}
					if !c.guard.share.turns.TryAcquire(few.turns) || !c.guard.share.large.TryAcquire(few.large) || !c.guard.share.watches.TryAcquire(few.watches) {
						t.Error("a turn was not given back")
					}
				})
			})
		}
	}
}

// TestFloodHurtsNobodyElse has one region of twenty send as much as it can,
// on every path at once: what this process holds stays bounded, and the others
// are asked as if it were not there.
func TestFloodHurtsNobodyElse(t *testing.T) {
	const most = 200 << 20 // bytes on the heap, garbage included
	stop := make(chan struct{})
	var peak uint64
	var watching sync.WaitGroup
	watching.Go(func() { peak = watchHeap(stop) })
	for _, behavior := range []adversary.Behavior{adversary.Flood, adversary.Dense, adversary.Events, adversary.Event} {
		synctest.Test(t, func(t *testing.T) {
			flood := wired(t, &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, adversary.New(behavior, ""))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var callers sync.WaitGroup
			for range 8 {
				for _, read := range readingPaths() {
					callers.Go(func() { _ = read(ctx, flood) }) // what comes of it is tested elsewhere
				}
			}
			p, _ := stubbed(map[string]stub{"east": well})
			others := make([]*Cluster, 19)
			for i := range others {
				others[i] = opening(t, p, "east")
			}
			for ctx.Err() == nil {
				start := time.Now()
				for _, other := range others {
					if err := other.tryOnce(t.Context()); err != nil || time.Since(start) > 0 {
						t.Errorf("%s: another region answers after %v: %v", behavior, time.Since(start), err)
					}
				}
				<-time.After(time.Second)
			}
			callers.Wait()
		})
	}
	close(stop)
	watching.Wait()
	t.Logf("the heap had up to %d MiB", peak>>20)
	if peak > most {
		t.Errorf("the heap had %d MiB", peak>>20)
	}
}

// watchHeap returns the largest heap that it saw until it was stopped.
func watchHeap(stop <-chan struct{}) (peak uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		metrics.Read(sample)
		peak = max(peak, sample[0].Value.Uint64())
		select {
		case <-stop:
			return peak
		case <-tick.C:
		}
	}
}
