package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

var configMaps = nf.Ref{Version: "v1", Kind: "ConfigMap"}

// watchOver returns a SharedWatch of one region, "east".
func watchOver(c *Cluster) *SharedWatch {
	return NewSharedWatch(func(_ context.Context, region string) (*Cluster, error) {
		if region != "east" {
			return nil, nf.E(nf.NotFound, "get", "cloud region "+region, nil)
		}
		return c, nil
	})
}

// seenEvent is the part of an ObjectEvent that tests compare.
type seenEvent struct {
	Owner, Name, Value string
	Deleted, Synced    bool
}

func glanceAt(e ObjectEvent) seenEvent {
	return seenEvent{Owner: e.Owner, Name: e.Ref.Name, Value: text(e.Object, "data", "key"), Deleted: e.Deleted, Synced: e.Synced}
}

// TestFollow leads an object through its life, and acts when the former act was
// seen.
func TestFollow(t *testing.T) {
	t.Parallel()
	c, ns := sandbox(t)
	mine := configMap(t, "follow-1", ns, "mine", "1")
	mustApply(t, c, "follow-1", mine)
	plain := configMap(t, "follow-1", ns, "plain", "1")
	plain.SetLabels(nil)
	foreignApply(t, c, "somebody", plain)
	other := newNamespace(t)
	acts := []func(){
		func() { mustApply(t, c, "follow-1", configMap(t, "follow-1", ns, "mine", "2")) },
		func() { mustApply(t, c, "follow-2", configMap(t, "follow-2", other, "theirs", "1")) },
		func() { mustDelete(t, c, "follow-1", mine) },
		func() { mustOrphan(t, c, "follow-2", configMap(t, "follow-2", other, "theirs", "1")) },
	}
	want := []seenEvent{
		{Owner: "follow-1", Name: "mine", Value: "1"},
		{Synced: true},
		{Owner: "follow-1", Name: "mine", Value: "2"},
		{Owner: "follow-2", Name: "theirs", Value: "1"},
		{Owner: "follow-1", Name: "mine", Value: "2", Deleted: true},
		{Owner: "follow-2", Name: "theirs", Value: "1", Deleted: true},
	}
	var got []seenEvent
	for e, err := range watchOver(c).Subscribe(t.Context(), "east", configMaps) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.Synced && e.Ref.Namespace != ns && e.Ref.Namespace != other {
			continue // another test's
		}
		if !e.Deleted && text(e.Object, "metadata", "deletionTimestamp") != "" {
			continue // on its way
		}
		if g := glanceAt(e); len(got) == 0 || got[len(got)-1] != g {
			got = append(got, g)
		}
		if len(got) == len(want) {
			break
		}
		if len(got) > 1 && len(acts) > 0 && len(got)+len(acts) == len(want) {
			acts[0]()
			acts = acts[1:]
		}
	}
	diff(t, "what bears an owner is told, in every namespace, and what does not is not", want, got)
}

func mustDelete(t *testing.T, c *Cluster, owner string, us ...*unstructured.Unstructured) {
	t.Helper()
	if _, err := c.Delete(t.Context(), instance(owner), refs(us...)); err != nil {
		t.Fatal(err)
	}
}

func mustOrphan(t *testing.T, c *Cluster, owner string, us ...*unstructured.Unstructured) {
	t.Helper()
	if _, err := c.Orphan(t.Context(), instance(owner), refs(us...)); err != nil {
		t.Fatal(err)
	}
}

// TestFollowShares lets three subscribers follow one kind: there is one watch, and
// a late subscriber receives the same as the first.
func TestFollowShares(t *testing.T) {
	t.Parallel()
	c, r, ns := recorded(t)
	mustApply(t, c, "follow-1", configMap(t, "follow-1", ns, "a", "1"))
	w := watchOver(c)
	var inner func(depth int)
	inner = func(depth int) {
		seen := false
		for e, err := range w.Subscribe(t.Context(), "east", configMaps) {
			if err != nil {
				t.Fatal(err)
			}
			seen = seen || e.Ref.Namespace == ns && e.Ref.Name == "a"
			if !e.Synced {
				continue
			}
			if !seen {
				t.Errorf("follower %d was not told of what was there", depth)
			}
			break
		}
		if depth == 0 {
			return
		}
		for e, err := range w.Subscribe(t.Context(), "east", configMaps) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Synced {
				inner(depth - 1) // while this one follows
				return
			}
		}
	}
	for _, err := range w.Subscribe(t.Context(), "east", configMaps) {
		if err != nil {
			t.Fatal(err)
		}
		inner(2)
		break
	}
	asked := slices.DeleteFunc(r.Requests(), func(q clustertest.Request) bool { return q.Path != "/api/v1/configmaps" })
	if len(asked) != 1 || asked[0].Query.Get("sendInitialEvents") != "true" {
		t.Errorf("the requests are %v, want one watch, which sends the present state first", asked)
	}
	if n := len(w.broadcasts); n > 0 {
		t.Errorf("%d watches are left when nobody follows", n)
	}
}

func TestFollowEnds(t *testing.T) {
	c, ns := sandbox(t)
	mustApply(t, c, "follow-1", configMap(t, "follow-1", ns, "a", "1"))
	cases := map[string]struct {
		reason string
		stop   func(cancel func()) (goOn bool)
	}{
		"break":  {"who leaves the loop leaves nothing behind", func(func()) bool { return false }},
		"cancel": {"a context that ends ends the sequence without an error", func(cancel func()) bool { cancel(); return true }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, err := range watchOver(c).Subscribe(ctx, "east", configMaps) {
				if err != nil {
					t.Fatal(err)
				}
				if !tc.stop(cancel) {
					break
				}
			}
			cancel()
			if err := goleak.Find(before); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestFollowRefused(t *testing.T) {
	t.Parallel()
	c, _ := sandbox(t)
	cases := map[string]struct {
		reason string
		region string
		kind   nf.Ref
		want   nf.Kind
	}{
		"kind":   {"a region need not know every kind", "east", nf.Ref{Group: "example.org", Version: "v1", Kind: "Gadget"}, nf.Unsupported},
		"verb":   {"some kinds cannot be watched", "east", nf.Ref{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}, nf.Unsupported},
		"region": {"a region may be gone", "west", configMaps, nf.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watchOver(c)
			for range 2 { // the second time, too
				for e, err := range w.Subscribe(t.Context(), tc.region, tc.kind) {
					if nf.KindOf(err) != tc.want || err == nil {
						t.Errorf("%s: got %+v and %v, want an error of kind %v", tc.reason, e, err, tc.want)
					}
				}
			}
		})
	}
}

// TestFollowReplaced takes the kubeconfig away under those who follow.
func TestFollowReplaced(t *testing.T) {
	t.Parallel()
	pool := New(PoolConfig{Hosts: outbound.Hosts{}.WithLoopback()})
	c, err := pool.Open("east", accessTo(t, clustertest.Kubeconfig(t)))
	if err != nil {
		t.Fatal(err)
	}
	w := watchOver(c)
	var last error
	for e, err := range w.Subscribe(t.Context(), "east", configMaps) {
		if last = err; e.Synced {
			pool.Forget("east")
		}
	}
	if nf.KindOf(last) != nf.Unreachable || nf.ReasonOf(last) != "replaced" {
		t.Errorf("the sequence ended with %v, want nf.Unreachable, replaced", last)
	}
}

// TestFollowThroughFaults breaks the watch and lets changes happen in the meantime.
func TestFollowThroughFaults(t *testing.T) {
	t.Parallel()
	c, r, ns := recorded(t)
	watches := func(q clustertest.Request) bool {
		return q.Query.Get("watch") != "" && strings.HasSuffix(q.Path, "/configmaps")
	}
	gone := configMap(t, "follow-1", ns, "gone", "1")
	mustApply(t, c, "follow-1", gone)
	r.Fail(clustertest.Times(2, watches), clustertest.Drop)
	r.Fail(clustertest.Times(1, watches), clustertest.Status(410))
	var got []seenEvent
	for e, err := range watchOver(c).Subscribe(t.Context(), "east", configMaps) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Synced {
			mustDelete(t, c, "follow-1", gone)
		}
		if e.Ref.Namespace == ns {
			got = append(got, glanceAt(e))
		}
		if e.Deleted && e.Ref.Namespace == ns {
			break
		}
	}
	diff(t, "what went while nobody looked is told all the same", seenEvent{Owner: "follow-1", Name: "gone", Value: "1", Deleted: true}, got[len(got)-1])
}

func state(owner, name, value string) map[string]*unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value}}}
	u.SetName(name)
	u.SetLabels(map[string]string{nf.OwnerLabel: owner})
	return map[string]*unstructured.Unstructured{nf.RefOf(u).Key(): u}
}

// TestFollowerMisses sends many events to a subscriber that does not read in the meantime.
func TestFollowerMisses(t *testing.T) {
	t.Parallel()
	gone := map[string]*unstructured.Unstructured{"ConfigMap//a": nil}
	cases := map[string]struct {
		reason string
		told   []map[string]*unstructured.Unstructured
		want   []seenEvent
	}{
		"states":    {"of many states the last is left", []map[string]*unstructured.Unstructured{state("x", "a", "1"), state("x", "a", "2"), state("x", "a", "3")}, []seenEvent{{Owner: "x", Name: "a", Value: "3"}}},
		"order":     {"who changed first comes first", []map[string]*unstructured.Unstructured{state("x", "b", "1"), state("x", "a", "1"), state("x", "b", "2")}, []seenEvent{{Owner: "x", Name: "b", Value: "2"}, {Owner: "x", Name: "a", Value: "1"}}},
		"deletion":  {"that it is gone is its last state", []map[string]*unstructured.Unstructured{state("x", "a", "1"), gone}, []seenEvent{{Owner: "x", Name: "a", Value: "1", Deleted: true}}},
		"return":    {"that it came back is its last state", []map[string]*unstructured.Unstructured{state("x", "a", "1"), gone, state("x", "a", "2")}, []seenEvent{{Owner: "x", Name: "a", Value: "2"}}},
		"ownership": {"each of two owners hears of it", []map[string]*unstructured.Unstructured{state("x", "a", "1"), state("y", "a", "1")}, []seenEvent{{Owner: "x", Name: "a", Value: "1", Deleted: true}, {Owner: "y", Name: "a", Value: "1"}}},
		"unknown":   {"what was never seen is not gone", []map[string]*unstructured.Unstructured{gone}, []seenEvent{}},
		"synced":    {"it is told in its place", []map[string]*unstructured.Unstructured{state("x", "a", "1"), {initialListDone: nil}, state("x", "b", "1")}, []seenEvent{{Owner: "x", Name: "a", Value: "1"}, {Synced: true}, {Owner: "x", Name: "b", Value: "1"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &broadcast{last: map[string]ObjectEvent{}, subscribers: map[*subscriber]bool{}}
			s := b.join()
			for _, told := range tc.told {
				b.publish(told)
			}
			b.end(errors.New("over"))
			events, err := s.take()
			got := []seenEvent{}
			for _, e := range events {
				got = append(got, glanceAt(e))
			}
			diff(t, tc.reason, tc.want, got)
			if err == nil {
				t.Error("what was waiting hides the end")
			}
		})
	}
}
