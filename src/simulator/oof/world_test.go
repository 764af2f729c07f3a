package oof_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
	"github.com/multicloud-k8s/k8splugin/src/simulator/oof"
)

// region is a cloud region of a test, in A&AI and in multicloud.
type region struct {
	id       string
	version  string            // cloud-region-version
	site     map[string]string // attributes of its complex; nil: it has none
	flavors  []flavor
	capacity string // response of capacity_check
	status   int    // of that response
}

type flavor struct {
	name         string
	capabilities []capability
}

type capability struct {
	feature, architecture, version string
	attributes                     map[string]string
}

// right returns a region that fits the demand of the tests.
func right(id string) region {
	return region{
		id: id, version: "1.0", status: http.StatusOK,
		site: map[string]string{"complex-name": id, "latitude": "52.5", "longitude": "13.4", "city": "Berlin", "country": "DE"},
		flavors: []flavor{{"k8s-large", []capability{
			{"basicCapabilities", "generic", "v1", map[string]string{"numVirtualCpu": `{"value":"8"}`, "virtualMemSize": `{"value":"16384","unit":"MB"}`}},
			{"hugePages", "generic", "v1", map[string]string{"memoryPageSize": `{"value":"2","unit":"MB"}`}},
			{"hugePages", "generic", "v1", map[string]string{"memoryPageSize": `{"value":"1024","unit":"MB"}`}},
			{"instructionSetExtensions", "Intel64", "v1", map[string]string{"instructionSetExtensions": `{"value":["AESNI","AVX2","SSE4"]}`}},
		}}},
		capacity: `{"result":true,"AZs":[{"availability-zone-name":"az1","vCPUTotal":32,"vCPUAvail":20,"MemoryTotal":128,"MemoryAvail":90.5,"StorageTotal":400,"StorageAvail":300}]}`,
	}
}

// fits is a demand that right regions fit.
func fits() oof.Demand {
	return oof.Demand{
		VDUs: []oof.VDU{{ID: "vgw", Parameter: "vgw_flavor", Requirements: []oof.Requirement{
			{Feature: "basicCapabilities", Architecture: "generic", Version: "v1", Mandatory: true, Attributes: []oof.Attribute{
				{Key: "numVirtualCpu", Operator: oof.GreaterOrEqual, Value: "4"}, {Key: "virtualMemSize", Operator: oof.GreaterOrEqual, Value: "8", Unit: "GB"},
			}},
			{Feature: "hugePages", Architecture: "generic", Version: "v1", Mandatory: true, Attributes: []oof.Attribute{{Key: "memoryPageSize", Operator: oof.Equal, Value: "1", Unit: "GB"}}},
			{Feature: "instructionSetExtensions", Architecture: "Intel64", Version: "v1", Mandatory: true, Attributes: []oof.Attribute{
				{Key: "instructionSetExtensions", Operator: oof.All, List: []string{"AVX2", "AESNI"}},
			}},
		}}},
		Capacity: oof.Capacity{CPUs: 4, Memory: 8, Storage: 20},
	}
}

// world is a simulator of OOF with its peers.
type world struct {
	*testing.T
	*oof.Simulator

	aai     *aai.Simulator
	aaiURL  string
	regions []region
	checks  []string // capacity_checks
}

// newWorld starts the peers with regions. A test fails if one of them misunderstands
// OOF.
func newWorld(t *testing.T, regions ...region) *world {
	t.Helper()
	peer, err := aai.New(aai.Config{Users: map[string]string{"oof": "p"}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, aai: peer, regions: regions}
	inventory, multicloud := httptest.NewServer(peer), httptest.NewServer(http.HandlerFunc(w.check))
	t.Cleanup(inventory.Close)
	t.Cleanup(multicloud.Close)
	w.aaiURL = inventory.URL
	w.Simulator, err = oof.New(oof.Config{
		AAI: inventory.URL, User: "oof", Password: "p", Multicloud: multicloud.URL + "/api/multicloud",
		Authorize: func(r *http.Request) { r.Header.Set("Authorization", "Bearer t") },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		w.add(r)
	}
	peer.Journal()
	t.Cleanup(func() {
		if wrong := peer.Violations(); len(wrong) > 0 {
			t.Errorf("A&AI does not understand OOF: %q", wrong)
		}
	})
	return w
}

// check responds to a capacity_check.
func (w *world) check(out http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost || len(body) != 3 || r.Header.Get("Authorization") != "Bearer t" {
		w.Errorf("a wrong capacity_check: %s %v %v", r.Method, body, r.Header)
	}
	w.checks = append(w.checks, r.URL.Path)
	for _, one := range w.regions {
		if r.URL.Path == "/api/multicloud/v1/k8s/"+one.id+"/capacity_check" {
			out.WriteHeader(one.status)
			_, _ = out.Write([]byte(one.capacity))
			return
		}
	}
	http.NotFound(out, r)
}

// add puts a region into A&AI.
func (w *world) add(r region) {
	w.Helper()
	body := map[string]any{"cloud-type": "k8s"}
	if r.version != "" {
		body["cloud-region-version"] = r.version
	}
	if r.site != nil {
		site := map[string]any{"physical-location-type": "", "street1": "", "city": "", "postal-code": "", "country": "", "region": ""}
		for name, value := range r.site {
			site[name] = value
		}
		w.put("/cloud-infrastructure/complexes/complex/"+r.id, site)
		body["relationship-list"] = map[string]any{"relationship": []any{map[string]any{"related-link": "/cloud-infrastructure/complexes/complex/" + r.id}}}
	}
	path := "/cloud-infrastructure/cloud-regions/cloud-region/k8s/" + r.id
	w.put(path, body)
	for _, f := range r.flavors {
		w.put(path+"/flavors/flavor/"+f.name, f.body())
	}
}

func (f flavor) body() map[string]any {
	var all []any
	for i, c := range f.capabilities {
		attributes := []any{}
		for key, value := range c.attributes {
			attributes = append(attributes, map[string]any{"hpa-attribute-key": key, "hpa-attribute-value": value})
		}
		all = append(all, map[string]any{
			"hpa-capability-id": fmt.Sprint(f.name, i), "hpa-feature": c.feature, "architecture": c.architecture, "hpa-version": c.version, "hpa-feature-attributes": attributes,
		})
	}
	out := map[string]any{"flavor-name": f.name, "flavor-selflink": "x"}
	if len(all) > 0 {
		out["hpa-capabilities"] = map[string]any{"hpa-capability": all}
	}
	return out
}

func (w *world) put(path string, object map[string]any) {
	w.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		w.Fatal(err)
	}
	if resp := w.aai.Do(w.Context(), "test", http.MethodPut, path, string(body)); resp.Code != http.StatusCreated {
		w.Fatalf("cannot put %s: %d %s", path, resp.Code, resp.Body)
	}
}

// wantNoViolations fails the test if peers have sent what HAS misunderstands.
func (w *world) wantNoViolations(reason string) {
	w.Helper()
	if wrong := w.Violations(); len(wrong) > 0 {
		w.Errorf("%s: HAS misunderstands its peers: %q", reason, wrong)
	}
}

// only returns a region with one flavor that has the capability.
func only(id, name string, all ...capability) region {
	r := right(id)
	r.flavors = []flavor{{name, all}}
	return r
}

// without returns the region without one capability of its flavors.
func (r region) without(feature string) region {
	for i, f := range r.flavors {
		r.flavors[i].capabilities = slices.DeleteFunc(f.capabilities, func(c capability) bool { return c.feature == feature })
	}
	return r
}
