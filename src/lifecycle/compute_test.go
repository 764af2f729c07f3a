package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// profiled makes a request ask for a compute profile, by its name or as an object.
func profiled(workload string, profile any) func(*nf.InstantiateRequest) {
	return func(req *nf.InstantiateRequest) { req.Inputs.OOF = profileOf(workload, profile) }
}

func profileOf(workload string, profile any) []map[string]any {
	return []map[string]any{{"compute_profiles": []any{map[string]any{"workload": workload, "profile": profile}}}}
}

// onProfile changes the profile of an instance.
func onProfile(pkg, workload string, profile any, onFailure nf.OnFailure) nf.UpgradeRequest {
	return nf.UpgradeRequest{Options: nf.Options{OnFailure: onFailure}, Edit: func(s *nf.Spec) error {
		s.Package, s.Inputs.OOF = pkg, profileOf(workload, profile)
		return nil
	}}
}

// flavored makes the flavors of a region known: k8s-gpu, as long as it has nodes.
func flavored(regions *fakeRegions) func(*config) {
	return func(c *config) {
		c.Regions = regions
		c.Flavors = func(offers nf.RegionCapabilities, flavor string) ([]map[string]string, bool, []string) {
			if len(offers.Rooms) == 0 {
				return nil, false, nil
			}
			return []map[string]string{{"gpu": offers.Version}}, flavor == "k8s-gpu", []string{"k8s-gpu"}
		}
	}
}

// nodesOf returns the labels that the pods of the Deployment web require of their nodes.
func (s *site) nodesOf(name string) string {
	s.t.Helper()
	text := fmt.Sprint(s.cluster.objects["Deployment.apps/ns/"+name].object.Object)
	var out []string
	for _, part := range strings.Split(text, "map[key:")[1:] {
		key, rest, _ := strings.Cut(part, " ")
		_, value, _ := strings.Cut(rest, "values:[")
		value, _, _ = strings.Cut(value, "]")
		out = append(out, key+"="+value)
	}
	return strings.Join(out, " ")
}

// TestComputeOfAnInstance follows the compute profile of an instance through its changes.
func TestComputeOfAnInstance(t *testing.T) {
	s, regions := newSite(t), twoRegions()
	regions.offers["east"] = nf.RegionCapabilities{Version: "v1", Rooms: []nf.NodeRoom{node("a", 1)}}
	e := s.start(flavored(regions))
	op := e.up(t, "pods.web", named, profiled("web", "large"))
	wants := func(reason, nodes string, uses ...nf.ComputeUse) {
		t.Helper()
		in, err := e.Instance(t.Context(), op.Subject.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.nodesOf("web"); got != nodes {
			t.Errorf("%s: the pods require %q, want %q", reason, got, nodes)
		}
		if diff := cmp.Diff(uses, in.Compute); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	large := nf.ComputeUse{Workload: "Deployment/web", Name: "large", Profile: declaredProfiles["large"]}
	wants("a profile of the package", "size=large", large)
	e.upgrade(t, op.Subject.ID, onProfile("pods.web", "Deployment/web", "k8s-gpu", ""))
	gpu := nf.ComputeUse{Workload: "Deployment/web", Name: "k8s-gpu", Profile: nf.ComputeProfile{Flavor: "k8s-gpu", FlavorNodes: []map[string]string{{"gpu": "v1"}}}}
	wants("a flavor of the region", "gpu=v1", gpu)

	regions.offers["east"] = nf.RegionCapabilities{Version: "v2"}
	e.upgrade(t, op.Subject.ID, nf.UpgradeRequest{Edit: func(s *nf.Spec) error { s.Labels = map[string]string{"a": "b"}; return nil }})
	wants("another change keeps the flavor, even if the region does not have it any longer", "gpu=v1", gpu)
	amended, err := e.Configure(t.Context(), op.Subject.ID, nf.ConfigureRequest{Edit: func(s *nf.Spec) error {
		s.Amendments = []nf.Amendment{{Name: "day2", Package: "pods.web-pods.app"}}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if amended = e.end(t, amended); len(amended.Warnings) != 1 || !strings.Contains(amended.Warnings[0], "compute_profiles of the package pods.web-pods.app have no effect") {
		t.Errorf("the warnings are %q", amended.Warnings)
	}
	wants("an object of an amendment has the profile, too", "gpu=v1", gpu)
	if got := s.nodesOf("app"); got != "" {
		t.Errorf("another workload of the amendment requires %q", got)
	}

	again, err := e.Configure(t.Context(), op.Subject.ID, nf.ConfigureRequest{Edit: func(s *nf.Spec) error { s.Amendments = nil; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if again = e.end(t, again); len(again.Warnings) > 0 {
		t.Errorf("the warnings of the amendment remain: %q", again.Warnings)
	}
	wants("and so has the package's own object, when the amendment is removed", "gpu=v1", gpu)

	s.cluster.refuse("bad", nf.E(nf.Invalid, "apply", "ConfigMap ns/bad", nil))
	e.upgrade(t, op.Subject.ID, onProfile("pods.web_bad", "web", "small", nf.Undo))
	wants("an undone change restores it", "gpu=v1", gpu)
	back, err := e.Rollback(t.Context(), op.Subject.ID, nf.RollbackRequest{Revision: 1})
	if err != nil {
		t.Fatal(err)
	}
	e.end(t, back)
	wants("a rollback restores the first one", "size=large", large)
	e.upgrade(t, op.Subject.ID, nf.UpgradeRequest{Edit: func(s *nf.Spec) error { s.Inputs.OOF = nil; return nil }})
	wants("a profile can be removed", "")
}

// TestComputeRefused compares what is refused before anything is touched.
func TestComputeRefused(t *testing.T) {
	hidden := nf.RegionCapabilities{Missing: []nf.MissingRule{{Resource: "nodes", Verb: "list"}}}
	some := nf.RegionCapabilities{Rooms: []nf.NodeRoom{node("a", 1)}}
	directive := func(id, flavor string) []map[string]any {
		attribute := map[string]any{"attribute_name": "f", "attribute_value": flavor}
		flavors := map[string]any{"type": "flavor_directives", "attributes": []any{attribute}}
		return []map[string]any{{"directives": []any{map[string]any{"id": id, "type": "vnfc", "directives": []any{flavors}}}}}
	}
	cases := map[string]struct {
		reason string
		oof    []map[string]any
		offers *nf.RegionCapabilities // nil: the region does not answer
		kind   nf.Kind
		want   string // of the violations; empty: the request is accepted
	}{
		"Profile":     {"the package does not have it", profileOf("web", "huge"), &some, nf.Invalid, `oof_parameters[0].compute_profiles[0].profile: "huge" is not a compute profile of the package; it has large, small`},
		"Workload":    {"the package does not have it", profileOf("db", "large"), &some, nf.Invalid, `oof_parameters[0].compute_profiles[0].workload: "db" is not in the package; its objects with pods are Deployment/web`},
		"Form":        {"a profile has fields", profileOf("web", map[string]any{"devices": map[string]any{"a.b/c": 1.5}}), &some, nf.Invalid, `oof_parameters[0].compute_profiles[0].profile.devices.a.b/c: must be a whole number of devices, at least 1`},
		"Flavor":      {"the region does not have it", profileOf("web", "k8s-none"), &some, nf.Unsupported, `oof_parameters[0].compute_profiles[0].profile: cloud region east has no flavor "k8s-none"; it has k8s-gpu`},
		"Nodes":       {"the region has no nodes", profileOf("web", map[string]any{"flavor": "k8s-none"}), &nf.RegionCapabilities{}, nf.Unsupported, `oof_parameters[0].compute_profiles[0].profile: cloud region east has no flavor "k8s-none"; it has none`},
		"Hidden":      {"its nodes may not be read", profileOf("web", "k8s-gpu"), &hidden, nf.Unsupported, `oof_parameters[0].compute_profiles[0].profile: cannot be found: the account of cloud region east needs the rule {apiGroups: [""], resources: ["nodes"], verbs: ["list"]}`},
		"Unreachable": {"it does not answer", profileOf("web", "k8s-gpu"), nil, nf.Unreachable, ""},
		"Directive":   {"OOF names a workload, and a flavor that is none", directive("web", "m1.large"), &some, nf.Invalid, `oof_parameters[0].directives[0].directives[0].attributes[0].attribute_value: "m1.large" is not a compute profile of the package; it has large, small`},
		"Other":       {"OOF names something else", directive("vfc-1", "m1.large"), nil, 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, regions := newSite(t), twoRegions()
			delete(regions.offers, "east")
			if tc.offers != nil {
				regions.offers["east"] = *tc.offers
			}
			e := s.start(flavored(regions))
			req := nf.InstantiateRequest{Region: "east", Namespace: "ns", Spec: nf.Spec{Package: "pods.web", Inputs: nf.Inputs{OOF: tc.oof}}}
			op, err := e.Instantiate(t.Context(), req)
			if tc.kind == 0 {
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				e.end(t, op)
				return
			}
			if got := nf.ViolationsOf(err).Error(); nf.KindOf(err) != tc.kind || got != tc.want {
				t.Errorf("%s: %v error\n%s\nwant %v\n%s", tc.reason, nf.KindOf(err), got, tc.kind, tc.want)
			}
			if len(s.cluster.objects) > 0 {
				t.Errorf("%s: objects were applied: %v", tc.reason, s.cluster.objects)
			}
		})
	}
}

// TestPlacementFlavor leaves out regions without a flavor that the request names.
func TestPlacementFlavor(t *testing.T) {
	t.Parallel()
	flavor := map[string]any{"flavor": "k8s-gpu"}
	directives := []map[string]any{{"directives": []any{map[string]any{"id": "other", "directives": []any{
		map[string]any{"type": "flavor_directives", "attributes": []any{map[string]any{"attribute_name": "flavor", "attribute_value": "k8s-none"}}},
	}}}}}
	cases := map[string]struct {
		reason string
		oof    []map[string]any
		want   string // the chosen region; empty: none
		detail string // of east
	}{
		"None":      {"a request without flavors fits every region", nil, "east", ""},
		"Name":      {"the name of a flavor", profileOf("web", "k8s-gpu"), "west", "has no flavor k8s-gpu"},
		"Profile":   {"the flavor of a profile", profileOf("web", flavor), "west", "has no flavor k8s-gpu"},
		"Package":   {"a profile of the package may not have one", profileOf("web", "large"), "east", ""},
		"Directive": {"OOF's directives are without effect on other workloads", directives, "east", ""},
		"Nowhere":   {"no region has it", profileOf("web", "k8s-none"), "", "has no flavor k8s-none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				regions := twoRegions()
				regions.offers["east"] = nf.RegionCapabilities{}
				e := newSite(t).start(flavored(regions))
				p, err := e.PreviewInstantiate(t.Context(), nf.InstantiateRequest{
					Spec: nf.Spec{Package: "pods.web", Inputs: nf.Inputs{OOF: tc.oof}}, Placement: &nf.Placement{},
				})
				if tc.want == "" {
					if nf.ReasonOf(err) != nf.ReasonNoRegion || !strings.Contains(err.Error(), tc.detail) {
						t.Errorf("%s: %v", tc.reason, err)
					}
					return
				}
				if err != nil || p.Placed == nil || p.Placed.Region != tc.want {
					t.Fatalf("%s: %+v, %v", tc.reason, p.Placed, err)
				}
				for _, c := range p.Placed.Candidates {
					if c.Region == "east" && (c.Detail != tc.detail || (c.Reason == nf.PlacementFeature) != (tc.detail != "")) {
						t.Errorf("%s: %+v", tc.reason, c)
					}
				}
			})
		})
	}
}
