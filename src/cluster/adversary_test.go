package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"reflect"
	"runtime/debug"
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
// it is done; one that follows the region, when it receives an event or when it
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
	refs := []nf.Ref{nf.RefOf(one()[0])}
	selector := nf.AdoptionSelector{Labels: map[string]string{"app": "x"}}
	return map[string]func(ctx context.Context, c *Cluster) error{
		"Preflight": func(ctx context.Context, c *Cluster) error {
			_, err := c.Preflight(ctx, instance(owner), inside(ns), one())
			return err
		},
		"Preflight of several": func(ctx context.Context, c *Cluster) error {
			_, err := c.Preflight(ctx, instance(owner), inside(ns), two())
			return err
		},
		"PreflightAdopt": func(ctx context.Context, c *Cluster) error {
			_, err := c.PreflightAdopt(ctx, instance(owner), inside(ns), selector, two())
			return err
		},
		"fit": func(ctx context.Context, c *Cluster) error { return c.fit(ctx, one(), nil, false) },
		"DryRun": func(ctx context.Context, c *Cluster) error {
			_, err := c.DryRun(ctx, instance(owner), []*unstructured.Unstructured{{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "made", "labels": map[string]any{nf.OwnerLabel: owner}},
			}}}, nil)
			return err
		},
		"DryRun in a namespace": func(ctx context.Context, c *Cluster) error {
			_, err := c.DryRun(ctx, instance(owner), one(), nil)
			return err
		},
		"Index": func(ctx context.Context, c *Cluster) error {
			_, err := schemaSource{c.client, c.service}.Index(ctx)
			return err
		},
		"Document": func(ctx context.Context, c *Cluster) error {
			_, err := schemaSource{c.client, c.service}.Document(ctx, "/openapi/v3/apis/apps/v1?hash=A")
			return err
		},
		"Mutating": func(ctx context.Context, c *Cluster) error {
			_, err := schemaSource{c.client, c.service}.Mutating(ctx)
			return err
		},
		"Live": func(ctx context.Context, c *Cluster) error {
			_, err := schemaSource{c.client, c.service}.Live(ctx, refs[0])
			return err
		},
		"Namespaces": func(ctx context.Context, c *Cluster) error { _, err := c.Namespaces(ctx, []string{ns}); return err },
		"Namespaces of several": func(ctx context.Context, c *Cluster) error {
			_, err := c.Namespaces(ctx, []string{ns, "ns2"})
			return err
		},
		"Scope": func(ctx context.Context, c *Cluster) error { _, _, err := c.Scope(ctx, refs[0]); return err },
		"Diff": func(ctx context.Context, c *Cluster) error {
			_, err := c.Diff(ctx, instance(owner), nf.AdoptionSelector{}, one())
			return err
		},
		"Apply": func(ctx context.Context, c *Cluster) error {
			_, err := c.Apply(ctx, instance(owner), one())
			return err
		},
		"ApplyNew": func(ctx context.Context, c *Cluster) error {
			_, err := c.ApplyNew(ctx, instance(owner), one())
			return err
		},
		"Delete": func(ctx context.Context, c *Cluster) error {
			_, err := c.Delete(ctx, instance(owner), refs)
			return err
		},
		"Orphan": func(ctx context.Context, c *Cluster) error {
			_, err := c.Orphan(ctx, instance(owner), refs)
			return err
		},
		"Adopt": func(ctx context.Context, c *Cluster) error {
			_, err := c.Adopt(ctx, instance(owner), selector, refs)
			return err
		},
		"Ensure": func(ctx context.Context, c *Cluster) error { _, err := c.Ensure(ctx, one()); return err },
		"Health": func(ctx context.Context, c *Cluster) error {
			_, err := c.Health(ctx, instance(owner), refs)
			return err
		},
		"Read": func(ctx context.Context, c *Cluster) error { _, err := c.Read(ctx, instance(owner), refs); return err },
		"Unready": func(ctx context.Context, c *Cluster) error {
			_, _, err := c.Unready(ctx, instance(owner), refs, 5)
			return err
		},
		"Pods": func(ctx context.Context, c *Cluster) error {
			_, err := c.Pods(ctx, instance(owner), refs)
			return err
		},
		"Served": func(ctx context.Context, c *Cluster) error { _, err := c.Served(ctx, refs); return err },
		"RegionCapabilities": func(ctx context.Context, c *Cluster) error {
			_, err := c.RegionCapabilities(ctx, true)
			return err
		},
		"Scaling": func(ctx context.Context, c *Cluster) error {
			_, err := c.Scaling(ctx, instance(owner), []nf.Scaling{{Ref: refs[0], By: 1}}, false)
			return err
		},
		"Restarting": func(ctx context.Context, c *Cluster) error {
			_, err := c.Restarting(ctx, instance(owner), refs, json.RawMessage(`"now"`))
			return err
		},
		"Machines": func(ctx context.Context, c *Cluster) error {
			_, err := c.Machines(ctx, instance(owner), []nf.Ref{{Group: machineGroup, Version: "v1", Kind: "VirtualMachine", Namespace: ns, Name: "fw"}}, nf.Stop)
			return err
		},
		"Set": func(ctx context.Context, c *Cluster) error {
			_, err := c.Set(ctx, instance(owner), []nf.Setting{{Ref: refs[0], Path: "/spec/replicas", Value: json.RawMessage("2")}}, false)
			return err
		},
		"Drift": func(ctx context.Context, c *Cluster) error {
			_, err := c.Drift(ctx, instance(owner), one(), nil)
			return err
		},
		"Correct": func(ctx context.Context, c *Cluster) error {
			_, err := c.Correct(ctx, instance(owner), one(), nil)
			return err
		},
		"Patch": func(ctx context.Context, c *Cluster) error {
			return c.Patch(ctx, refs[0], map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
		},
		"Evict": func(ctx context.Context, c *Cluster) error {
			pod := nf.HealPod{Ref: nf.Ref{Version: "v1", Kind: "Pod", Namespace: ns, Name: "web-1"}, UID: "u", Workload: refs[0]}
			_, err := c.Evict(ctx, instance(owner), pod, nf.HealTask{Patience: time.Minute})
			return err
		},
		"VolumeClaims": func(ctx context.Context, c *Cluster) error {
			_, err := c.VolumeClaims(ctx, instance(owner), []nf.Ref{{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: ns, Name: "db"}}, nil)
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
		"contents": func(ctx context.Context, c *Cluster) error {
			_, err := namespace{c.service, namespaceTarget(ns)}.contents(ctx)
			return err
		},
		"awaitRemoval": func(ctx context.Context, c *Cluster) error {
			return namespace{c.service, namespaceTarget(ns)}.awaitRemoval(ctx, "u")
		},
		"Watch": func(ctx context.Context, c *Cluster) error {
			for _, err := range c.Watch(ctx, instance(owner), []nf.Change{{Ref: refs[0], UID: "u", Generation: 2}}) {
				return err
			}
			return ctx.Err()
		},
		"Subscribe": func(ctx context.Context, c *Cluster) error {
			w := NewSharedWatch(func(context.Context, string) (*Cluster, error) { return c, nil })
			for _, err := range w.Subscribe(ctx, "east", nf.Ref{Version: "v1", Kind: "ConfigMap"}) {
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		},
		"Census": func(ctx context.Context, c *Cluster) error {
			for _, kind := range []string{"ConfigMap", "Service"} {
				for _, err := range c.Census(ctx, nf.Ref{Version: "v1", Kind: kind}) {
					if err != nil {
						return err
					}
				}
			}
			return ctx.Err()
		},
		"checkReady": func(ctx context.Context, c *Cluster) error { c.checkReady(ctx); return nil },
		"probe": func(ctx context.Context, c *Cluster) error {
			_, err := probe(ctx, c.service)
			if err != nil {
				err = probeError(probeReason(ctx, err), err)
			}
			return err
		},
	}
}

// TestReadingPathsAreComplete fails when a method reads from a region and is not
// among the paths.
func TestReadingPathsAreComplete(t *testing.T) {
	quiet := map[string]string{
		"As": "it makes a cluster and reads nothing",
	}
	paths := map[string]bool{"probe": true, "checkReady": true, "fit": true, "contents": true, "awaitRemoval": true} // of Pool, and parts of others
	for _, of := range []reflect.Type{reflect.TypeFor[*Cluster](), reflect.TypeFor[schemaSource](), reflect.TypeFor[*SharedWatch]()} {
		for method := range of.Methods() {
			paths[method.Name] = true
		}
	}
	met := map[string]bool{}
	for path := range readingPaths() {
		name, _, _ := strings.Cut(path, " ")
		if met[name] = true; !paths[name] {
			t.Errorf("path %s: there is no such method", path)
		}
	}
	for name := range paths {
		if _, silent := quiet[name]; met[name] != silent {
			continue
		}
		t.Errorf("method %s: it must be a path of its own, or else among those that do not read", name)
	}
}

// TestAdversary has every path meet every way in which an API server misbehaves:
// it ends by itself, has read little, holds nothing, and repeats nothing that
// another server has said. The server misbehaves in what it says of objects, and
// then in all that it says.
func TestAdversary(t *testing.T) {
	for _, behavior := range adversary.Behaviors() {
		for path, read := range readingPaths() {
			t.Run(string(behavior)+"/"+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { meet(t, adversary.New(behavior, "http://127.0.0.1:1/elsewhere"), path, read) })
			})
			t.Run(string(behavior)+" everywhere/"+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := adversary.New(behavior, "http://127.0.0.1:1/elsewhere")
					server.Everywhere()
					meet(t, server, path, read)
				})
			})
		}
	}
}

func meet(t *testing.T, server *adversary.Server, path string, read func(context.Context, *Cluster) error) {
	t.Helper()
	const longEnough = 10 * time.Minute
	few := limits{
		turns: 8, watches: 8, large: 2, small: 16 << 10, answer: 1 << 20, survey: 2 << 20, event: 512 << 10, kept: 2 << 20, pace: 4 << 20,
		pages: 40, list: 4 << 20, restarts: 2, versions: 50,
	}
	// A path reads six kinds at most, and a page is tried in four sizes.
	most, mostAsked := 6*4*few.answer, int64(6*few.pages+200)
	var log bytes.Buffer
	c := wired(t, &pipes{
		conns: make(chan net.Conn), closed: make(chan struct{}), limits: few, log: slog.New(slog.NewTextHandler(&log, nil)),
	}, server)
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	err := read(ctx, c)
	// What follows a region may wait for news as long as it likes.
	waits := path == "Watch" || path == "Subscribe" || path == "Census" || path == "awaitRemoval" || path == "Ensure"
	if ctx.Err() != nil && !waits {
		t.Errorf("it did not end by itself: %v", err)
	}
	if sent := server.Sent(); sent > most {
		t.Errorf("it read %d KiB", sent>>10)
	}
	if asked := server.Requests(); asked > mostAsked {
		t.Errorf("it made %d requests", asked)
	}
	said := map[string]string{"state": c.state(0).Message, "log": log.String()}
	if err != nil {
		said["error"] = err.Error()
	}
	for where, text := range said {
		if strings.Contains(text, adversary.Secret) {
			t.Errorf("the %s repeats what another server says: %s", where, text)
		}
	}
	if kept := c.transport.usage.kept.Load(); kept != 0 {
		t.Errorf("%d bytes are counted as held at the end", kept)
	}
	if !c.transport.usage.turns.TryAcquire(few.turns) || !c.transport.usage.large.TryAcquire(few.large) || !c.transport.usage.watches.TryAcquire(few.watches) {
		t.Error("a turn was not given back")
	}
}

// TestFloodHurtsNobodyElse has one region of twenty send as much as it can,
// on every path at once: what this process holds stays bounded, and the others
// are asked as if it were not there.
func TestFloodHurtsNobodyElse(t *testing.T) {
	const most = 200 << 20                            // bytes on the heap, garbage included
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the other tests leave more garbage
	stop := make(chan struct{})
	var peak uint64
	var watching sync.WaitGroup
	watching.Go(func() { peak = watchHeap(stop) })
	for _, behavior := range []adversary.Behavior{adversary.Flood, adversary.Dense, adversary.Events, adversary.Event} {
		synctest.Test(t, func(t *testing.T) {
			flood := wired(t, &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, adversary.New(behavior, ""))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // longer than a request waits for its turn
			defer cancel()
			var callers sync.WaitGroup
			for range 2 {
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
