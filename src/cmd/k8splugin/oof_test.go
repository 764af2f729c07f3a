package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/simulator/oof"
)

// flavorOfOthers is a flavor with a feature that another client has written.
const flavorOfOthers = `{"flavor-name": "f", "flavor-selflink": "x", "hpa-capabilities": {"hpa-capability": [
	{"hpa-capability-id": "1", "hpa-feature": "hugePages", "architecture": "generic", "hpa-version": "v1", "hpa-feature-attributes": [{"hpa-attribute-key": "memoryPageSize", "hpa-attribute-value": "{\"value\":\"2\",\"unit\":\"MB\"}"}]},
	{"hpa-capability-id": "2", "hpa-feature": "basicCapabilities", "architecture": "generic", "hpa-version": "v1", "hpa-feature-attributes": [{"hpa-attribute-key": "numVirtualCpu", "hpa-attribute-value": "{\"value\":\"8\"}"}]},
	{"hpa-capability-id": "3", "hpa-feature": "instructionSetExtensions", "architecture": "Intel64", "hpa-version": "v1", "hpa-feature-attributes": [{"hpa-attribute-key": "instructionSetExtensions", "hpa-attribute-value": "{\"value\":[\"FEATURE\"]}"}]}]}}`

// placed puts a region into A&AI, with a complex that has attributes, and returns its path.
func (a *simulatedAAI) placed(id, attributes string) string {
	a.Helper()
	site, path := "/cloud-infrastructure/complexes/complex/"+id, "/cloud-infrastructure/cloud-regions/cloud-region/k8s/"+id
	a.put(site, fmt.Sprintf(`{"physical-location-type": "edge", "street1": "", "city": "Berlin", "postal-code": "", "country": "DE", "region": "EU", "complex-name": %q, %s}`, id, attributes))
	a.put(path, fmt.Sprintf(`{"cloud-type": "k8s", "cloud-region-version": "1.0", "relationship-list": {"relationship": [{"related-link": %q}]}}`, site))
	return path
}

// capability returns the path of a capability of a flavor in A&AI.
func (a *simulatedAAI) capability(flavor, feature string) string {
	a.Helper()
	_, all := a.as(http.MethodGet, flavor+"/hpa-capabilities?hpa-feature="+feature, "")
	items, _ := all["hpa-capability"].([]any)
	if len(items) != 1 {
		a.Fatalf("%s has %d capabilities %s", flavor, len(items), feature)
	}
	one, _ := items[0].(map[string]any)
	return fmt.Sprint(flavor, "/hpa-capabilities/hpa-capability/", one["hpa-capability-id"])
}

// demandFor is a demand that only nodes with a feature fit.
func demandFor(feature string) oof.Demand {
	needs := func(name, architecture string, a oof.Attribute) oof.Requirement {
		return oof.Requirement{Feature: name, Architecture: architecture, Version: "v1", Mandatory: true, Attributes: []oof.Attribute{a}}
	}
	return oof.Demand{
		VDUs: []oof.VDU{{ID: "upf", Parameter: "upf_flavor", Requirements: []oof.Requirement{
			needs("basicCapabilities", "generic", oof.Attribute{Key: "numVirtualCpu", Operator: oof.GreaterOrEqual, Value: "4"}),
			needs("hugePages", "generic", oof.Attribute{Key: "memoryPageSize", Operator: oof.Equal, Value: "2048", Unit: "KB"}),
			needs("instructionSetExtensions", "Intel64", oof.Attribute{Key: "instructionSetExtensions", Operator: oof.All, List: []string{feature}}),
		}}},
		Capacity: oof.Capacity{CPUs: 1, Memory: 1, Storage: 1},
	}
}

// TestPlacementByOOF has OOF choose a region from what the service has written to A&AI, and
// from the capacity that it reports. Three regions are the same cluster: east is right, west
// has no place on the map, and north is wrong in A&AI. South is not registered.
func TestPlacementByOOF(t *testing.T) {
	t.Parallel()
	feature := node(t)
	a := newAAI(t, nil)
	s := startBareService(t, a.settings("flavor"), func(c *Config) { c.AAIRegions.Prefixes = true })
	const onMap = `"latitude": "52.5", "longitude": "13.4"`
	paths := map[string]string{"east": a.placed("east", onMap), "west": a.placed("west", `"latitude": "52.5"`), "north": a.placed("north", onMap)}
	for id := range paths {
		s.want(http.StatusCreated, s.do("POST", "/v1/cloud_regions", map[string]any{"cloud_region_id": id, "cloud_owner": "k8s", "kubeconfig": clustertest.Kubeconfig(t)}))
		until(t, "A&AI has the flavors of "+id, func() bool { return s.flavorState(id) == "clean" })
	}
	flavor := a.flavorWith(paths["east"], feature)
	wrong := a.capability(paths["north"]+"/flavors/flavor/"+flavor, "hugePages") // until the service compares it, after an hour
	if status, out := a.as(http.MethodPatch, wrong, `{"hpa-version": "v2"}`); status != http.StatusOK {
		t.Fatalf("cannot change %s: %d %v", wrong, status, out)
	}
	a.put(a.placed("south", onMap)+"/flavors/flavor/f", strings.ReplaceAll(flavorOfOthers, "FEATURE", feature))

	placement, err := oof.New(oof.Config{AAI: a.url, User: "so", Password: "so", Multicloud: s.url + "/api/multicloud"})
	if err != nil {
		t.Fatal(err)
	}
	solution, err := placement.Place(t.Context(), demandFor(feature))
	if err != nil || solution.Owner != "k8s" || solution.Region != "east" {
		t.Fatalf("got %+v, %v; want k8s/east", solution, err)
	}
	rejected := map[string]oof.Step{}
	for _, r := range solution.Rejected {
		rejected[r.Region] = r.Step
	}
	if diff := cmp.Diff(map[string]oof.Step{"west": oof.StepRegion, "north": oof.StepFlavor, "south": oof.StepCapacity}, rejected); diff != "" {
		t.Errorf("regions are rejected for other reasons (-want +got):\n%s\n%+v", diff, solution.Rejected)
	}
	if got := solution.Parameters()[0]["upf_flavor"]; got != flavor {
		t.Errorf("the VDU gets the flavor %v, want %s", got, flavor)
	}
	large := demandFor(feature)
	large.Capacity.CPUs = 1 << 20
	if solution, err = placement.Place(t.Context(), large); !errors.Is(err, oof.ErrNoSolution) {
		t.Errorf("no region has the room: got %+v, %v", solution, err)
	}
	if wrong := placement.Violations(); len(wrong) > 0 {
		t.Errorf("OOF misunderstands the service: %q", wrong)
	}
}
