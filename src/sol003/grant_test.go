package sol003_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
)

// westVIM is a grant's connection to the region that is not the default VIM.
var westVIM = map[string]nf.VIMConnectionRequest{"granted": {VIM: nf.Region{ID: "west"}.VIMID(), Type: "ETSINFV.KUBERNETES.V_1"}}

// TestGrantRequests shows what each operation asks for.
func TestGrantRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.start(t, func(c *config) { c.Granter = w })
		ctx, id := t.Context(), create(t, m)
		large := instantiate
		large.Level = "large"
		o := do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(ctx, id, large) })
		added := func(ids ...string) (out []nf.GrantResource) {
			for _, id := range ids {
				out = append(out, nf.GrantResource{ID: id, VDU: "VDU1", Change: nf.VNFCAdded})
			}
			return out
		}
		if diff := cmp.Diff([]nf.GrantRequest{{
			VNF: id, Occurrence: o.ID, VNFD: "vnfd-1", Flavor: "simple", Level: "large", Operation: nf.OccurrenceInstantiate, Params: large.Extra,
			Resources: added("VDU1-1", "VDU1-2", "VDU1-3"), VIMs: []string{"default"},
		}}, w.asked); diff != "" {
			t.Fatalf("an instantiation (-want +got):\n%s", diff)
		}
		steps := []struct {
			reason  string
			request func() (nf.Occurrence, error)
			changes []nf.VNFCChange // of the resources that it asks for
			target  string
		}{
			{"a step adds pods", func() (nf.Occurrence, error) { return m.Scale(ctx, id, nf.ScaleVNFRequest{Aspect: "front", In: true}) }, []nf.VNFCChange{nf.VNFCRemoved}, ""},
			{"or removes them", func() (nf.Occurrence, error) { return m.Scale(ctx, id, nf.ScaleVNFRequest{Aspect: "front"}) }, []nf.VNFCChange{nf.VNFCAdded}, ""},
			{"a package changes all", func() (nf.Occurrence, error) {
				return m.ChangePackage(ctx, id, nf.ChangeVNFPackageRequest{VNFD: "vnfd-2"})
			}, nil, "vnfd-2"},
			{"names and notes need no grant", func() (nf.Occurrence, error) {
				return m.Modify(ctx, id, nf.ModifyVNFRequest{Metadata: map[string]any{"a": "b"}})
			}, nil, "none"},
		}
		for _, s := range steps {
			w.asked = nil
			do(t, m, nf.OccurrenceCompleted, s.request)
			if s.target == "none" {
				if len(w.asked) > 0 {
					t.Errorf("%s: the NFVO was asked for %+v", s.reason, w.asked)
				}
				continue
			}
			if len(w.asked) != 1 || w.asked[0].Destination != s.target {
				t.Fatalf("%s: the NFVO was asked for %+v", s.reason, w.asked)
			}
			var got []nf.VNFCChange
			for _, r := range w.asked[0].Resources {
				got = append(got, r.Change)
				if (r.Resource == "") != (r.Change == nf.VNFCAdded) {
					t.Errorf("%s: a resource that exists is named, and no other one: %+v", s.reason, r)
				}
			}
			if s.changes != nil && cmp.Diff(s.changes, got) != "" || s.changes == nil && (len(got) == 0 || got[0] != nf.VNFCModified) {
				t.Errorf("%s: got %v", s.reason, got)
			}
		}
		w.asked = nil
		one := get(t, m, id).Instantiated.VNFCs[0]
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) {
			return m.Heal(ctx, id, nf.HealVNFRequest{VNFCs: []string{one.ID()}, VNFRequest: nf.VNFRequest{Extra: map[string]any{"reason": "night"}}})
		})
		if diff := cmp.Diff(map[string]any{"reason": "night"}, w.asked[0].Params); diff != "" {
			t.Errorf("the parameters are those of the operation (-want +got):\n%s", diff)
		}
		if want := []nf.GrantResource{{ID: one.ID(), VDU: "VDU1", Change: nf.VNFCModified, Resource: one.Resource}}; cmp.Diff(want, w.asked[0].Resources) != "" {
			t.Errorf("a healing changes the components that it names, got %+v", w.asked[0].Resources)
		}
		w.asked = nil
		do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Terminate(ctx, id, nf.TerminateVNFRequest{}) })
		if r := w.asked[0].Resources; len(r) == 0 || r[0].Change != nf.VNFCRemoved {
			t.Errorf("a termination removes all, got %+v", r)
		}
	})
}

// TestGrantedPlaces has grants that say where the VNF is to be.
func TestGrantedPlaces(t *testing.T) {
	zone := map[string]string{"VDU1": "zone-a"}
	cases := map[string]struct {
		reason string
		answer nf.Grant
		region string
		zones  map[string]string
		want   nf.OccurrenceState
		says   string
	}{
		"anywhere":    {"without a place, the request decides", nf.Grant{}, "edge", nil, nf.OccurrenceCompleted, ""},
		"VIM":         {"the VIM of the resources is used", nf.Grant{VIMs: westVIM, VIM: "granted"}, "west", nil, nf.OccurrenceCompleted, ""},
		"only VIM":    {"so is the only one that is approved", nf.Grant{VIMs: westVIM}, "west", nil, nf.OccurrenceCompleted, ""},
		"zone":        {"pods run in the zone of their VDU", nf.Grant{Zones: zone}, "edge", zone, nf.OccurrenceCompleted, ""},
		"known VIM":   {"that of the request may be named", nf.Grant{VIM: "default"}, "edge", nil, nf.OccurrenceCompleted, ""},
		"no such VIM": {"another one must be described", nf.Grant{VIM: "far"}, "", nil, nf.OccurrenceRolledBack, "far"},
		"unknown VIM": {"a VIM must be registered", nf.Grant{VIMs: map[string]nf.VIMConnectionRequest{"x": {VIM: "nowhere"}}, VIM: "x"}, "", nil, nf.OccurrenceRolledBack, "nowhere"},
		"unknown VDU": {"a zone is for a workload", nf.Grant{Zones: map[string]string{"VDU9": "zone-a"}}, "", nil, nf.OccurrenceRolledBack, "VDU9"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.answer = tc.answer
				m, _ := w.start(t, func(c *config) { c.Granter = w })
				id := create(t, m)
				o := do(t, m, tc.want, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), id, instantiate) })
				if tc.want != nf.OccurrenceCompleted {
					if o.Failure == nil || !strings.Contains(o.Failure.Message, tc.says) || len(w.engine.instances) > 0 {
						t.Errorf("%s: the occurrence failed with %+v", tc.reason, o.Failure)
					}
					return
				}
				in := w.engine.instances[id]
				placed, _ := any(in.Inputs.OOF).([]map[string]any)
				if in.Region != tc.region || (len(placed) > 0) != (len(tc.zones) > 0) {
					t.Errorf("%s: the instance is in region %s, with %v", tc.reason, in.Region, placed)
				}
				if len(placed) > 0 {
					want := []any{map[string]any{"workload": "web", "profile": map[string]any{"node": map[string]any{"topology.kubernetes.io/zone": "zone-a"}}}}
					if diff := cmp.Diff(want, placed[0][nf.ComputeProfilesKey]); diff != "" {
						t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
					}
				}
				v := get(t, m, id)
				if diff := cmp.Diff(tc.zones, v.Instantiated.Zones); diff != "" || v.Instantiated.Region != tc.region {
					t.Errorf("%s: the VNF is in %s (-want +got):\n%s", tc.reason, v.Instantiated.Region, diff)
				}
			})
		})
	}
}

// TestGrantedNamespace has grants that demand another VIM than that of the request, whose
// default namespace is another one.
func TestGrantedNamespace(t *testing.T) {
	cases := map[string]struct {
		reason, fallback string
		extra            map[string]any
		answer           nf.Grant
		want             string // empty: the occurrence is rolled back
	}{
		"Default": {"it is the default one of the granted VIM", "west-apps", nil, nf.Grant{VIMs: westVIM, VIM: "granted"}, "west-apps"},
		"None":    {"which may have none", "", nil, nf.Grant{VIMs: westVIM, VIM: "granted"}, "default"},
		"Given":   {"the request has precedence", "west-apps", map[string]any{"namespace": "mine"}, nf.Grant{VIMs: westVIM, VIM: "granted"}, "mine"},
		"Stays":   {"the VIM of the request keeps its own", "west-apps", nil, nf.Grant{}, "apps"},
		"Invalid": {"one that is not a name is refused", "West_Apps", nil, nf.Grant{VIMs: westVIM, VIM: "granted"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				west := w.regions["west"]
				west.DefaultNamespace = tc.fallback
				w.regions["west"], w.answer = west, tc.answer
				m, _ := w.start(t, func(c *config) { c.Granter = w })
				id, want := create(t, m), nf.OccurrenceCompleted
				if tc.want == "" {
					want = nf.OccurrenceRolledBack
				}
				do(t, m, want, func() (nf.Occurrence, error) {
					return m.Instantiate(t.Context(), id, nf.InstantiateVNFRequest{Flavor: "simple", VNFRequest: nf.VNFRequest{Extra: tc.extra}})
				})
				if tc.want == "" {
					return
				}
				if in, v := w.engine.instances[id], get(t, m, id); in.Namespace != tc.want || v.Instantiated.Namespace != tc.want {
					t.Errorf("%s: the instance is in namespace %s, the VNF in %s, want %s", tc.reason, in.Namespace, v.Instantiated.Namespace, tc.want)
				}
			})
		})
	}
}

// TestGrantsThatMove refuses grants that place more pods where the others are not.
func TestGrantsThatMove(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer nf.Grant
		want   nf.OccurrenceState
	}{
		"same zone":  {"the zone stays", nf.Grant{Zones: map[string]string{"VDU1": "zone-a"}}, nf.OccurrenceCompleted},
		"other zone": {"a Deployment is in one zone", nf.Grant{Zones: map[string]string{"VDU1": "zone-b"}}, nf.OccurrenceRolledBack},
		"known VIM":  {"that of the VNF may be named", nf.Grant{VIM: "default"}, nf.OccurrenceCompleted},
		"other VIM":  {"a VNF is in one region", nf.Grant{VIMs: westVIM, VIM: "granted"}, nf.OccurrenceRolledBack},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.answer = nf.Grant{Zones: map[string]string{"VDU1": "zone-a"}}
				m, _ := w.start(t, func(c *config) { c.Granter = w })
				id := create(t, m)
				do(t, m, nf.OccurrenceCompleted, func() (nf.Occurrence, error) { return m.Instantiate(t.Context(), id, instantiate) })
				before := len(w.engine.ops)
				w.answer = tc.answer
				o := do(t, m, tc.want, func() (nf.Occurrence, error) { return m.Scale(t.Context(), id, nf.ScaleVNFRequest{Aspect: "front"}) })
				if began := len(w.engine.ops) > before; began != (tc.want == nf.OccurrenceCompleted) {
					t.Errorf("%s: the engine has begun: %t; the failure is %+v", tc.reason, began, o.Failure)
				}
			})
		})
	}
}

var _ sol003.Granter = (*world)(nil)
