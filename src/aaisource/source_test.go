package aaisource_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aaisource"
	"github.com/multicloud-k8s/k8splugin/src/aaisync"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var web = nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns", Name: "web"}

// world has one instance, one network, and one region with pods.
type world struct {
	in  nf.Instance
	net nf.Network

	mu       sync.Mutex
	region   nf.Region
	offers   nf.RegionCapabilities
	pods     []nf.Pod
	objects  []map[string]any
	marks    chan aaisource.Mark // of pods, after the first list
	first    []aaisource.Mark
	censuses map[string]int // running, by kind
	refuses  map[string]error
}

func newWorld() *world {
	return &world{
		in: nf.Instance{
			ID: "fox", Region: "east", Release: "front", LastOperation: "op1", Inventory: []nf.Item{{Ref: web}},
			AAI: nf.AAI{VNF: "V1", Module: "M1"},
		},
		net:     nf.Network{ID: "east.oam", Name: "oam", Region: "east", Driver: "multus", State: nf.SharedActive, Last: "op2"},
		region:  nf.Region{ID: "east", Owner: "k8s", AAITenant: "t1"},
		objects: []map[string]any{{"metadata": map[string]any{"uid": "1", "generation": int64(3), "labels": map[string]any{"a": "b"}}}},
		pods: []nf.Pod{{
			Health: nf.Health{Ref: nf.Ref{Version: "v1", Kind: "Pod", Namespace: "ns", Name: "web-1"}, Status: nf.Current, UID: "u1"},
			Phase:  "Running", IPs: []string{"10.0.0.7"}, Workload: web,
			Interfaces: []nf.Interface{{Name: "eth0", Network: "kindnet", IPs: []string{"10.0.0.7"}}, {Name: "net1", Network: "oam", IPs: []string{"10.9.0.4/24"}, MAC: "0a:58:0a:09:00:04"}},
		}},
		marks: make(chan aaisource.Mark), censuses: map[string]int{},
		refuses: map[string]error{"VirtualMachineInstance": nf.E(nf.Unsupported, "list", "VirtualMachineInstance objects", nil)},
	}
}

func (w *world) Instances(context.Context) ([]nf.Instance, error) { return []nf.Instance{w.in}, nil }

func (w *world) Instance(_ context.Context, id string) (nf.Instance, error) {
	if id != w.in.ID {
		return nf.Instance{}, nf.E(nf.NotFound, "get", "VNF instance "+id, nil)
	}
	return w.in, nil
}

func (w *world) Region(_ context.Context, id string) (nf.Region, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id != w.region.ID {
		return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	}
	return w.region, nil
}

func (w *world) Regions(context.Context) ([]nf.Region, error) { return []nf.Region{w.region}, nil }

func (w *world) Capabilities(context.Context, string) (nf.RegionCapabilities, error) {
	return w.offers, w.refuses["nodes"]
}

func (w *world) Objects(context.Context, nf.Instance, []nf.Ref) ([]map[string]any, error) {
	return w.objects, nil
}

func (w *world) Pods(context.Context, string) ([]nf.Pod, error) { return w.pods, nil }

// Census implements aaisource.Regions.
func (w *world) Census(ctx context.Context, _ string, kind nf.Ref) iter.Seq2[aaisource.Mark, error] {
	return func(yield func(aaisource.Mark, error) bool) {
		w.count(kind, 1)
		defer w.count(kind, -1)
		if err := w.refuses[kind.Kind]; err != nil {
			yield(aaisource.Mark{}, err)
			return
		}
		for _, m := range w.first {
			if !yield(m, nil) {
				return
			}
		}
		if !yield(aaisource.Mark{Synced: true}, nil) {
			return
		}
		for {
			select {
			case m := <-w.marks:
				if !yield(m, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (w *world) count(kind nf.Ref, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.censuses[kind.Kind] += n
}

// networks are those of a world.
type networks struct{ *world }

func (n networks) From(context.Context, nf.Cursor) iter.Seq2[nf.Network, error] {
	return func(yield func(nf.Network, error) bool) { yield(n.net, nil) }
}

func (n networks) Get(_ context.Context, id string) (nf.Network, error) {
	if id != n.net.ID {
		return nf.Network{}, nf.E(nf.NotFound, "get", "network "+id, nil)
	}
	return n.net, nil
}

func (n networks) Layout(nf.Network) (nf.Layout, error) { return nf.Layout{VLAN: 103}, nil }

func (w *world) source(t *testing.T, written aaisource.Written) *aaisource.Source {
	t.Helper()
	s, err := aaisource.New(aaisource.Config{
		Instances: w, Networks: networks{w}, Regions: w, Written: written, Scheme: aai.Scheme{Owner: "k8splugin", URL: "https://k8splugin.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func all() aaisource.Written {
	return aaisource.Written{Resources: true, Servers: true, Networks: true}
}

func subjects(t *testing.T, s *aaisource.Source) map[string]aaisync.Subject {
	t.Helper()
	out := map[string]aaisync.Subject{}
	for one, err := range s.Subjects(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out[one.ID] = one
	}
	return out
}

// TestSubjects changes a world, and looks at what A&AI is to have.
func TestSubjects(t *testing.T) {
	t.Parallel()
	both := []string{"instances/fox", "networks/east.oam"}
	cases := map[string]struct {
		reason  string
		change  func(w *world)
		written aaisource.Written
		want    []string
		changed bool // the version of the instance
	}{
		"both":        {"instances and networks are subjects", func(*world) {}, all(), both, false},
		"no networks": {"only what is asked for is written", func(*world) {}, aaisource.Written{Resources: true}, both[:1], true},
		"networks":    {"only what is asked for is written", func(*world) {}, aaisource.Written{Networks: true}, both[1:], false},
		"adapter":     {"two writers would delete each other's objects", func(w *world) { w.in.AAI.Writer = nf.AAIAdapter }, all(), both[1:], false},
		"subscribed":  {"SO's adapter has subscribed to it", func(w *world) { w.in.AAIAdapter = true }, all(), both[1:], false},
		"none":        {"a removed instance is to have nothing", func(w *world) { w.in.AAI.Writer = nf.AAINone }, all(), both[1:], false},
		"service":     {"the service is the default", func(w *world) { w.in.AAI.Writer = nf.AAIService }, all(), both, false},
		"empty":       {"an instance without objects has nothing", func(w *world) { w.in.Inventory = nil }, all(), both[1:], false},
		"no tenant":   {"objects are in a tenant", func(w *world) { w.region.AAITenant = "" }, all(), both[1:], false},
		"own tenant":  {"a request may name the tenant", func(w *world) { w.region.AAITenant = ""; w.in.AAI.Tenant = "t9" }, all(), both, true},
		"operation":   {"an operation changes the version", func(w *world) { w.in.LastOperation = "op7" }, all(), both, true},
		"running":     {"so does its end", func(w *world) { w.in.Operation = "op1" }, all(), both, true},
		"module":      {"so does another module", func(w *world) { w.in.AAI.Module = "M2" }, all(), both, true},
		"moved":       {"so does another tenant of the region", func(w *world) { w.region.AAITenant = "t2" }, all(), both, true},
		"creating":    {"a network that is not there yet is no subject", func(w *world) { w.net.State = nf.SharedCreating }, all(), both[:1], false},
		"flavors":     {"a region's nodes are a subject", func(*world) {}, aaisource.Written{Flavors: true}, []string{"regions/east"}, false},
		"no access":   {"nodes of a region without access are unknown", func(w *world) { w.region.AAI = &nf.AAISource{Reason: "none"}; w.region.Access = nf.Access{} }, aaisource.Written{Flavors: true}, nil, false},
		"removed":     {"a region that is gone has no tenant", func(w *world) { w.region.ID = "west" }, all(), nil, false},
	}
	before := subjects(t, newWorld().source(t, all()))["instances/fox"]
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			tc.change(w)
			s := w.source(t, tc.written)
			got := subjects(t, s)
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if fox, ok := got["instances/fox"]; ok && (fox.Version != before.Version) != tc.changed || fox.Busy != (w.in.Operation != "") {
				t.Errorf("%s: version %s, before %s, busy %t", tc.reason, fox.Version, before.Version, fox.Busy)
			}
			for _, id := range append(both, "regions/east") {
				one, err := s.Subject(t.Context(), id)
				if want, ok := got[id]; ok != (err == nil) || ok && one != want || !ok && nf.KindOf(err) != nf.NotFound {
					t.Errorf("%s alone: %+v, %v", id, one, err)
				}
			}
			why, err := s.Lacking(t.Context(), w.in)
			if _, ok := got["instances/fox"]; err != nil || tc.written.Resources && ok != (why == "") {
				t.Errorf("%s: the reason is %q (%v)", tc.reason, why, err)
			}
		})
	}
}

// TestDocuments returns the documents of an instance.
func TestDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.in.Inventory = append(w.in.Inventory, nf.Item{Ref: nf.Ref{Version: "v1", Kind: "Service", Namespace: "ns", Name: "gone"}})
	w.objects = append(w.objects, nil)
	s := w.source(t, all())
	subject, docs, err := s.Documents(t.Context(), "instances/fox")
	if err != nil || subject.ID != "instances/fox" {
		t.Fatal(subject, err)
	}
	got := map[string]int{}
	var lines []string
	for _, d := range docs {
		got[d.Path[strings.LastIndex(d.Path[:strings.LastIndex(d.Path, "/")], "/")+1:strings.LastIndex(d.Path, "/")]]++
		for _, link := range d.Children {
			for _, address := range link.Children {
				lines = append(lines, strings.Join(append([]string{link.Attributes["interface-name"].(string), address.Path[strings.LastIndex(address.Path, "/")+1:]}, address.Edges...), " "))
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"k8s-resource": 2, "vserver": 1}, got); diff != "" {
		t.Errorf("an object that does not exist has no document (-want +got):\n%s", diff)
	}
	want := []string{"eth0 10.0.0.7", "net1 10.9.0.4 /network/l3-networks/l3-network/east.oam"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the addresses differ (-want +got):\n%s", diff)
	}
	if _, _, err := s.Documents(t.Context(), "instances/bear"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("an unknown instance: %v", err)
	}
}

// TestFlavors returns the flavors of a region's nodes.
func TestFlavors(t *testing.T) {
	t.Parallel()
	node := func(cpus int64, features ...string) nf.NodeRoom {
		room := nf.NodeRoom{Total: nf.Amounts{"cpu": cpus * 1000, "memory": 8 << 30, "ephemeral-storage": 100 << 30}, Features: map[string]string{}}
		for _, name := range features {
			room.Features[name] = "true"
		}
		return room
	}
	w := newWorld()
	s := w.source(t, aaisource.Written{Flavors: true})
	first := subjects(t, s)["regions/east"]
	w.offers = nf.RegionCapabilities{Rooms: []nf.NodeRoom{node(4), node(8, "cpu-cpuid.AVX2"), node(16, "cpu-cpuid.AVX2")}}
	subject, docs, err := s.Documents(t.Context(), aaisource.RegionID("east"))
	if err != nil || subject != first || subject.Place != (aai.Place{Owner: "k8s", Region: "east"}) {
		t.Errorf("a change of nodes does not change the subject: %+v, at first %+v, %v", subject, first, err)
	}
	var sizes []any
	for _, d := range docs {
		sizes = append(sizes, d.Attributes["flavor-vcpus"])
	}
	if len(sizes) != 2 || !slices.Contains(sizes, any(int64(4))) || !slices.Contains(sizes, any(int64(8))) {
		t.Errorf("the flavors have the sizes %v, want those of the smallest nodes", sizes)
	}
	w.offers = nf.RegionCapabilities{Missing: []nf.MissingRule{{Resource: "nodes", Verb: "list"}}}
	if _, docs, err := s.Documents(t.Context(), aaisource.RegionID("east")); len(docs) > 0 || err != nil {
		t.Errorf("nodes that may not be listed have no flavors: %v, %v", docs, err)
	}
	w.refuses["nodes"] = nf.E(nf.Unreachable, "list", "nodes", nil)
	if _, _, err := s.Documents(t.Context(), aaisource.RegionID("east")); nf.KindOf(err) != nf.Unreachable {
		t.Errorf("a region that does not respond: %v", err)
	}
	for _, moved := range []func(*nf.Region){
		func(r *nf.Region) { r.Owner = "other" }, func(r *nf.Region) { r.Created = time.Unix(1, 0) }, func(r *nf.Region) { r.Probe.Server = "https://other" },
	} {
		again := newWorld()
		moved(&again.region)
		if got := subjects(t, again.source(t, aaisource.Written{Flavors: true}))["regions/east"]; got.Version == first.Version {
			t.Errorf("another cluster has the same version: %+v", again.region)
		}
	}
}

// TestWatch follows the pods of a region.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		pod := aaisource.Mark{Owner: "fox", Key: "Pod/ns/web-1", Status: nf.Current, Stamp: 1}
		w.first = []aaisource.Mark{pod, {Owner: "bear", Key: "Pod/ns/other", Status: nf.Current, Stamp: 9}}
		s := w.source(t, all())
		live := func() string { return subjects(t, s)["instances/fox"].Live }
		if got := live(); got != "" {
			t.Errorf("nothing is watched, and yet it is %q", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { s.Watch(ctx) })
		synctest.Wait()
		one := live()
		if one == "" {
			t.Error("the pods must be known")
		}
		for _, step := range []struct {
			reason string
			mark   aaisource.Mark
			same   bool
		}{
			{"a pod of another instance does not matter", aaisource.Mark{Owner: "bear", Key: "Pod/ns/other", Status: nf.Current, Stamp: 10}, true},
			{"a pod that is no longer ready does", aaisource.Mark{Owner: "fox", Key: "Pod/ns/web-1", Status: nf.InProgress, Stamp: 1}, false},
			{"and as before it is as before", pod, true},
			{"a second pod counts", aaisource.Mark{Owner: "fox", Key: "Pod/ns/web-2", Status: nf.Current, Stamp: 2}, false},
			{"until it is deleted", aaisource.Mark{Owner: "fox", Key: "Pod/ns/web-2", Status: nf.Absent}, true},
		} {
			w.marks <- step.mark
			synctest.Wait()
			if got := live(); (got == one) != step.same {
				t.Errorf("%s: %s, at first %s", step.reason, got, one)
			}
		}
		w.in.AAI.Writer = nf.AAINone
		subjects(t, s)
		timer := time.NewTimer(time.Minute)
		<-timer.C
		synctest.Wait()
		if w.censuses["Pod"] != 0 {
			t.Error("a region without subjects is not watched any longer")
		}
		cancel()
		watching.Wait()
	})
}

// TestInstances answers the questions about objects of SO's adapter.
func TestInstances(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.in.AAI.Writer = nf.AAIAdapter
	s := w.source(t, all())
	places, err := s.Places(t.Context())
	if diff := cmp.Diff([]aai.Place{{Owner: w.region.Owner, Region: "east"}}, places); diff != "" || err != nil {
		t.Errorf("the places differ (-want +got): %s, %v", diff, err)
	}
	for id, want := range map[string]bool{"fox": true, "bear": false} {
		if got, err := s.Exists(t.Context(), id); got != want || err != nil {
			t.Errorf("%s exists: %t, %v", id, got, err)
		}
	}
	w.region.Owner = ""
	if places, err := s.Places(t.Context()); err != nil || len(places) > 0 {
		t.Errorf("a region without an owner is not in A&AI: %v, %v", places, err)
	}
}
