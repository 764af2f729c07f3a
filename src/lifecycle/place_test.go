package lifecycle_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// fakeRegions are the regions of a placement.
type fakeRegions struct {
	mu     sync.Mutex
	all    []nf.Region
	states map[string]nf.RegionCondition
	offers map[string]nf.RegionCapabilities
	read   []string // in the order of the requests
}

func (r *fakeRegions) RegionsFrom(context.Context, nf.Cursor) iter.Seq2[nf.Region, error] {
	return func(yield func(nf.Region, error) bool) {
		for _, one := range r.all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

func (r *fakeRegions) RegionState(region nf.Region) nf.RegionState {
	return nf.RegionState{Condition: r.states[region.ID], Reason: "tcp"}
}

func (r *fakeRegions) RegionCapabilities(_ context.Context, id string, _ bool) (nf.RegionCapabilities, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = append(r.read, id)
	offers, ok := r.offers[id]
	if !ok {
		return offers, &nf.Error{Kind: nf.Unreachable, Reason: nf.ReasonTCP, Op: "read", Subject: id, Err: errors.New("no route")}
	}
	return offers, nil
}

// node is a node with free cpu in thousandths, and 10 free places for pods.
func node(name string, cpu int64, features ...string) nf.NodeRoom {
	out := nf.NodeRoom{Name: name, Features: map[string]string{}, Free: nf.Amounts{"cpu": cpu, "pods": 10}}
	for _, f := range features {
		key, value, _ := strings.Cut(f, "=")
		out.Features[key] = value
	}
	return out
}

// rich is what a region offers that fits every need of these tests.
func rich() nf.RegionCapabilities {
	return nf.RegionCapabilities{
		APIs: []string{"kubevirt.io/v1", "kubevirt.io/v1/VirtualMachine", "v1"}, Networks: []nf.NetworkFlavor{{Name: "kube-ovn"}},
		Rooms:     []nf.NodeRoom{node("a", 8000, "AVX=true"), node("b", 8000, "AVX=true")},
		Resources: []nf.NodeResource{{Name: "cpu", Allocatable: 32000, Free: 16000}},
	}
}

// twoRegions are east and west, which offer the same.
func twoRegions() *fakeRegions {
	return &fakeRegions{
		all:    []nf.Region{{ID: "east", Labels: map[string]string{"site": "edge"}}, {ID: "west", Labels: map[string]string{"site": "edge"}}},
		states: map[string]nf.RegionCondition{}, offers: map[string]nf.RegionCapabilities{"east": rich(), "west": rich()},
	}
}

func TestPlacement(t *testing.T) {
	all := nf.Placement{
		Selector: "site=edge", Features: map[string]string{nf.FeaturePrefix + "AVX": "true"}, APIs: []string{"kubevirt.io/v1"}, Networks: []string{"kube-ovn"},
		Plugins: []string{"macvlan"}, Room: nf.Room{Total: map[string]string{"cpu": "12"}, Pod: map[string]string{"cpu": "3500m"}, Pods: 4},
	}
	offers := func(edit func(*nf.RegionCapabilities)) func(*fakeRegions) {
		return func(r *fakeRegions) {
			east := rich()
			edit(&east)
			r.offers["east"] = east
		}
	}
	cases := map[string]struct {
		reason  string
		arrange func(*fakeRegions)
		needs   func(*nf.Placement)
		want    string // the chosen region
		east    nf.PlacementReason
		detail  string
	}{
		"First":       {reason: "equal regions are ordered by id", want: "east", east: nf.PlacementChosen},
		"Selector":    {reason: "its labels do not match", arrange: func(r *fakeRegions) { r.all[0].Labels = nil }, want: "west", east: nf.PlacementSelector},
		"Unreachable": {reason: "it is known to be unreachable", arrange: func(r *fakeRegions) { r.states["east"] = nf.RegionUnreachable }, want: "west", east: nf.PlacementUnreachable, detail: "tcp"},
		"Outage":      {reason: "it does not answer", arrange: func(r *fakeRegions) { delete(r.offers, "east") }, want: "west", east: nf.PlacementUnreachable, detail: "tcp"},
		"Removing":    {reason: "it is being removed", arrange: func(r *fakeRegions) { r.all[0].Removing = "x" }, want: "west", east: nf.PlacementUnreachable},
		"Plugin":      {reason: "a plugin is declared as absent", arrange: func(r *fakeRegions) { r.all[0].Plugins = map[string]bool{"macvlan": false} }, want: "west", east: nf.PlacementPlugin, detail: "macvlan"},
		"PluginThere": {reason: "one is declared as there", arrange: func(r *fakeRegions) { r.all[0].Plugins = map[string]bool{"macvlan": true} }, want: "east", east: nf.PlacementChosen},
		"API":         {reason: "KubeVirt is missing", arrange: offers(func(c *nf.RegionCapabilities) { c.APIs = []string{"v1"} }), want: "west", east: nf.PlacementAPI, detail: "kubevirt.io/v1"},
		"Flavor":      {reason: "kube-ovn is missing", arrange: offers(func(c *nf.RegionCapabilities) { c.Networks = nil }), want: "west", east: nf.PlacementFlavor, detail: "kube-ovn"},
		"Feature":     {reason: "no node has the value", arrange: offers(func(c *nf.RegionCapabilities) { c.Rooms = []nf.NodeRoom{node("a", 64000, "AVX=false")} }), want: "west", east: nf.PlacementFeature, detail: "AVX"},
		"AnyValue":    {reason: "any value will do", arrange: offers(func(c *nf.RegionCapabilities) { c.Rooms = []nf.NodeRoom{node("a", 64000, "AVX=512")} }), needs: func(p *nf.Placement) { p.Features = map[string]string{"AVX": nf.AnyValue} }, want: "east", east: nf.PlacementChosen},
		"Total":       {reason: "nodes without the feature do not count", arrange: offers(func(c *nf.RegionCapabilities) { c.Rooms = []nf.NodeRoom{node("a", 8000, "AVX=true"), node("b", 64000)} }), want: "west", east: nf.PlacementRoom, detail: "8 of cpu are free, 12 are needed"},
		"NoNodes":     {reason: "it has no usable nodes, whatever their features", arrange: offers(func(c *nf.RegionCapabilities) { c.Rooms = nil }), needs: func(p *nf.Placement) { p.Features = nil }, want: "west", east: nf.PlacementRoom, detail: "0 of cpu are free, 12 are needed"},
		"Pods": {reason: "a pod is on one node", arrange: offers(func(c *nf.RegionCapabilities) {
			c.Rooms = []nf.NodeRoom{node("a", 9000, "AVX=true"), node("b", 5000, "AVX=true")}
		}), want: "west", east: nf.PlacementRoom, detail: "3 of 4 pods fit"},
		"Places":   {reason: "a node takes only so many pods", arrange: offers(func(c *nf.RegionCapabilities) { c.Rooms[0].Free["pods"], c.Rooms[1].Free["pods"] = 1, 1 }), want: "west", east: nf.PlacementRoom, detail: "2 of 4 pods fit"},
		"Unknown":  {reason: "its account may not list pods", arrange: offers(func(c *nf.RegionCapabilities) { c.Missing = []nf.MissingRule{{Resource: "pods", Verb: "list"}} }), want: "west", east: nf.PlacementUnknown, detail: `resources: ["pods"]`},
		"MostRoom": {reason: "the largest free share", arrange: offers(func(c *nf.RegionCapabilities) { c.Resources[0].Allocatable = 64000 }), needs: func(p *nf.Placement) { p.Prefer = nf.PreferRoom }, want: "west", east: nf.PlacementRanked},
		"Regions":  {reason: "only the named ones", needs: func(p *nf.Placement) { p.Regions = []string{"west"} }, want: "west"},
		"Permission": {reason: "the caller may not use it", needs: func(p *nf.Placement) {
			p.Permit = func(_ context.Context, id string) (bool, nf.PlacementReason, error) {
				if id == "east" {
					return true, nf.PlacementPermission, nil
				}
				return true, "", nil
			}
		}, want: "west", east: nf.PlacementPermission},
		"Hidden": {reason: "the caller does not see it", needs: func(p *nf.Placement) {
			p.Permit = func(_ context.Context, id string) (bool, nf.PlacementReason, error) { return id != "east", "", nil }
		}, want: "west"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			regions, needs := twoRegions(), all
			if tc.arrange != nil {
				tc.arrange(regions)
			}
			if tc.needs != nil {
				tc.needs(&needs)
			}
			synctest.Test(t, func(t *testing.T) {
				e := newSite(t).start(func(c *config) { c.Regions = regions })
				p, err := e.PreviewInstantiate(t.Context(), nf.InstantiateRequest{Spec: nf.Spec{Package: "web"}, Placement: &needs})
				if err != nil || p.Placed == nil {
					t.Fatalf("%s: %v, %+v", tc.reason, err, p.Placed)
				}
				if p.Placed.Region != tc.want || p.Placed.Candidates[0].Region != tc.want || p.Placed.Candidates[0].Reason != nf.PlacementChosen {
					t.Errorf("%s: %+v, want %s", tc.reason, p.Placed, tc.want)
				}
				at := slices.IndexFunc(p.Placed.Candidates, func(c nf.Candidate) bool { return c.Region == "east" })
				switch {
				case tc.east == "":
					if at >= 0 {
						t.Errorf("%s: east is a candidate: %+v", tc.reason, p.Placed.Candidates)
					}
				case at < 0 || p.Placed.Candidates[at].Reason != tc.east || !strings.Contains(p.Placed.Candidates[at].Detail, tc.detail):
					t.Errorf("%s: %+v, want that east is %s (%s)", tc.reason, p.Placed.Candidates, tc.east, tc.detail)
				}
			})
		})
	}
}

// TestPlacementSpreads places instances on the region that has the fewest, and returns the
// same region for a repeated request. The operation says how the region was chosen.
func TestPlacementSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		regions := twoRegions()
		e := newSite(t).start(func(c *config) { c.Regions = regions })
		request := func(name, pkg, key string) nf.InstantiateRequest {
			return nf.InstantiateRequest{
				Spec: nf.Spec{Package: pkg}, Name: name, Placement: &nf.Placement{Selector: "site"},
				Options: nf.Options{Key: nf.RequestKey{Key: key, Digest: "d"}},
			}
		}
		var chosen []string
		for _, name := range []string{"a", "b", "c"} {
			op, err := e.Instantiate(t.Context(), request(name, name, "key-"+name))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			chosen = append(chosen, op.Region)
			if placed := op.Instance.Placed; placed == nil || placed.Region != op.Region || len(placed.Candidates) != 2 || placed.Candidates[1].Reason != nf.PlacementRanked {
				t.Errorf("the operation says %+v", op.Instance.Placed)
			}
		}
		if diff := cmp.Diff([]string{"east", "west", "east"}, chosen); diff != "" {
			t.Errorf("regions (-want +got):\n%s", diff)
		}
		if len(regions.read) > 0 {
			t.Errorf("regions are read without need: %v", regions.read)
		}
		again, err := e.Instantiate(t.Context(), request("a", "a", "key-a"))
		if err != nil || again.Region != "east" {
			t.Errorf("repeated: in %s, %v; want east, where the instance is", again.Region, err)
		}
	})
}

// TestPlacementReadsUntilOneFits does not read the regions behind one that fits.
func TestPlacementReadsUntilOneFits(t *testing.T) {
	regions := &fakeRegions{offers: map[string]nf.RegionCapabilities{}}
	for _, id := range []string{"east", "west", "r-1", "r-2", "r-3", "r-4", "r-5", "r-6", "r-7", "r-8", "r-9"} {
		regions.all = append(regions.all, nf.Region{ID: id})
		regions.offers[id] = rich()
	}
	synctest.Test(t, func(t *testing.T) {
		e := newSite(t).start(func(c *config) { c.Regions = regions })
		_, err := e.PreviewInstantiate(t.Context(), nf.InstantiateRequest{Spec: nf.Spec{Package: "web"}, Placement: &nf.Placement{APIs: []string{"v1"}, Regions: []string{"east", "west"}}})
		if err != nil || len(regions.read) != 2 {
			t.Errorf("%v: %v were read", err, regions.read)
		}
		regions.read = nil
		if _, err := e.PreviewInstantiate(t.Context(), nf.InstantiateRequest{Spec: nf.Spec{Package: "web"}, Placement: &nf.Placement{APIs: []string{"v1"}}}); len(regions.read) != 8 {
			t.Errorf("%v: %d regions were read, want the first 8 of 11", err, len(regions.read))
		}
	})
}

func TestPlacementRefused(t *testing.T) {
	cases := map[string]struct {
		reason string
		needs  nf.Placement
		region string
		kind   nf.Kind
		fields []string
	}{
		"NoRegion": {"no region fits, and each says why", nf.Placement{APIs: []string{"example.org"}}, "", nf.Unsupported, []string{"placement", "placement"}},
		"Neither":  {"the region is named or chosen", nf.Placement{}, "none", nf.Invalid, []string{"cloud_region_id"}},
		"Both":     {"the region is named or chosen", nf.Placement{}, "east", nf.Invalid, []string{"placement"}},
		"Selector": {"not a selector", nf.Placement{Selector: "a in"}, "", nf.Invalid, []string{"placement.selector"}},
		"Room":     {"not quantities", nf.Placement{Room: nf.Room{Total: map[string]string{"cpu": "much"}, Pod: map[string]string{"memory": "-1"}}}, "", nf.Invalid, []string{"placement.room.total.cpu", "placement.room.pod.memory"}},
		"Pods":     {"pods of which size?", nf.Placement{Room: nf.Room{Pods: 3}}, "", nf.Invalid, []string{"placement.room.pods"}},
		"Prefer":   {"the most room of what?", nf.Placement{Prefer: nf.PreferRoom}, "", nf.Invalid, []string{"placement.prefer"}},
		"Rule":     {"not a rule", nf.Placement{Prefer: "cheapest"}, "", nf.Invalid, []string{"placement.prefer"}},
		"Feature":  {"a feature has a value", nf.Placement{Features: map[string]string{"AVX": ""}}, "", nf.Invalid, []string{"placement.features.AVX"}},
		"Unknown":  {"a region that does not exist, or that the caller does not see", nf.Placement{Regions: []string{"north"}}, "", nf.NotFound, []string{"placement.regions[0]"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newSite(t).start(func(c *config) { c.Regions = twoRegions() })
				req := nf.InstantiateRequest{Spec: nf.Spec{Package: "web"}, Region: tc.region, Placement: &tc.needs}
				if tc.region == "none" {
					req.Region, req.Placement = "", nil
				}
				_, err := e.Instantiate(t.Context(), req)
				var fields []string
				for _, v := range nf.ViolationsOf(err) {
					fields = append(fields, v.Field)
					if tc.kind == nf.Unsupported && (v.Reason != nf.PlacementAPI || v.Region == "" || nf.ReasonOf(err) != nf.ReasonNoRegion) {
						t.Errorf("%s: %+v has no reason as data", tc.reason, v)
					}
				}
				if nf.KindOf(err) != tc.kind || !slices.Equal(fields, tc.fields) {
					t.Errorf("%s: %v: %v, want %s of %v", tc.reason, err, fields, tc.kind, tc.fields)
				}
			})
		})
	}
}

// TestPlacementNetworks leaves out regions without a network that the instance attaches to,
// or whose network the caller may not read.
func TestPlacementNetworks(t *testing.T) {
	hidden := func(_ context.Context, n nf.Network) (bool, error) {
		return n.Region != "east" && n.Region != "west", nil
	}
	for network, attach := range map[string]func(context.Context, nf.Network) (bool, error){"missing": nil, "oam": hidden} {
		synctest.Test(t, func(t *testing.T) {
			e := newSite(t).start(func(c *config) { c.Regions = twoRegions() })
			_, err := e.Instantiate(t.Context(), nf.InstantiateRequest{
				Spec: nf.Spec{Package: "web", Networks: []nf.Attachment{{Network: network}}}, Placement: &nf.Placement{Attach: attach},
			})
			v := nf.ViolationsOf(err)
			if nf.ReasonOf(err) != nf.ReasonNoRegion || len(v) != 2 || v[0].Reason != nf.PlacementNetwork || !strings.HasSuffix(v[0].Message, "has no network "+network) {
				t.Errorf("network %s: %v", network, err)
			}
		})
	}
}

// TestPlacementVolumes leaves out regions without a volume that the instance uses, whose
// volume is in use, or whose volume the caller may not read.
func TestPlacementVolumes(t *testing.T) {
	hidden := func(_ context.Context, v nf.Volume) (bool, error) { return v.Region != "east", nil }
	cases := map[string]struct {
		reason string
		volume string
		mount  func(context.Context, nf.Volume) (bool, error)
		want   string // the chosen region; empty: none
		detail string // of east
	}{
		"Missing": {reason: "no region has it", volume: "missing", detail: "has no volume missing"},
		"Busy":    {reason: "it is in use everywhere", volume: "busy", detail: "that is in use"},
		"Hidden":  {reason: "the caller may not read that of east", volume: "data", mount: hidden, want: "west", detail: "has no volume data"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newSite(t).start(func(c *config) { c.Regions = twoRegions() })
				preview, err := e.PreviewInstantiate(t.Context(), nf.InstantiateRequest{
					Spec: nf.Spec{Package: "pods.web", Volumes: []nf.VolumeUse{{Volume: tc.volume, Claim: tc.volume}}}, Placement: &nf.Placement{Mount: tc.mount},
				})
				if tc.want == "" {
					v := nf.ViolationsOf(err)
					if nf.ReasonOf(err) != nf.ReasonNoRegion || len(v) != 2 || v[0].Reason != nf.PlacementVolume || !strings.Contains(v[0].Message, tc.detail) {
						t.Errorf("%s: %v", tc.reason, err)
					}
					return
				}
				if err != nil || preview.Placed.Region != tc.want {
					t.Fatalf("%s: %+v, %v", tc.reason, preview.Placed, err)
				}
				for _, c := range preview.Placed.Candidates {
					if c.Region == "east" && (c.Reason != nf.PlacementVolume || !strings.Contains(c.Detail, tc.detail)) {
						t.Errorf("%s: %+v", tc.reason, c)
					}
				}
			})
		})
	}
}
