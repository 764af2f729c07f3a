package oof_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/simulator/aai"
	"github.com/multicloud-k8s/k8splugin/src/simulator/oof"
)

// TestPlace places a demand in three regions, of which one is right. The first one is
// wrong in the way of the case; the third one is so in another way.
func TestPlace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spoil  func(*region)
		step   oof.Step
		want   string // in the reason of the rejection
	}{
		"version":      {"HAS skips regions without a version", func(r *region) { r.version = "" }, oof.StepRegion, "cloud-region-version"},
		"complex":      {"HAS skips regions without a complex", func(r *region) { r.site = nil }, oof.StepRegion, "0 complexes"},
		"latitude":     {"HAS computes distances", func(r *region) { delete(r.site, "latitude") }, oof.StepRegion, "no latitude"},
		"longitude":    {"HAS computes distances", func(r *region) { delete(r.site, "longitude") }, oof.StepRegion, "no longitude"},
		"city":         {"A&AI accepts an empty city, HAS does not", func(r *region) { r.site["city"] = "" }, oof.StepRegion, "no city"},
		"country":      {"A&AI accepts an empty country, HAS does not", func(r *region) { r.site["country"] = "" }, oof.StepRegion, "no country"},
		"name":         {"HAS names complexes", func(r *region) { delete(r.site, "complex-name") }, oof.StepRegion, "no complex-name"},
		"flavors":      {"capabilities are those of flavors only", func(r *region) { r.flavors = nil }, oof.StepFlavor, "no flavors"},
		"bare":         {"a flavor without capabilities fits nothing", func(r *region) { r.flavors[0].capabilities = nil }, oof.StepFlavor, "k8s-large lacks HPA capabilities"},
		"feature":      {"a mandatory feature is required", func(r *region) { *r = r.without("hugePages") }, oof.StepFlavor, "k8s-large lacks hugePages"},
		"architecture": {"architectures are compared", func(r *region) { r.flavors[0].capabilities[3].architecture = "generic" }, oof.StepFlavor, "instructionSetExtensions"},
		"hpa-version":  {"versions are compared", func(r *region) { r.flavors[0].capabilities[0].version = "v2" }, oof.StepFlavor, "basicCapabilities"},
		"size":         {"a smaller flavor does not fit", func(r *region) { r.flavors[0].capabilities[0].attributes["numVirtualCpu"] = `{"value":"2"}` }, oof.StepFlavor, "basicCapabilities"},
		"unit": {"8 GB are more than 8191 MB", func(r *region) {
			r.flavors[0].capabilities[0].attributes["virtualMemSize"] = `{"value":"8191","unit":"MB"}`
		}, oof.StepFlavor, "basicCapabilities"},
		"attribute": {"an attribute must be there", func(r *region) { delete(r.flavors[0].capabilities[0].attributes, "virtualMemSize") }, oof.StepFlavor, "basicCapabilities"},
		"list": {"all elements must be there", func(r *region) {
			r.flavors[0].capabilities[3].attributes["instructionSetExtensions"] = `{"value":["AVX2"]}`
		}, oof.StepFlavor, "instructionSetExtensions"},
		"split": {"one flavor must have all", func(r *region) {
			all := r.flavors[0].capabilities
			r.flavors = []flavor{{"one", all[:2]}, {"two", all[2:]}}
		}, oof.StepFlavor, "one lacks hugePages, two lacks basicCapabilities"},
		"room": {"a region without room is not chosen", func(r *region) { r.capacity = `{"result":false,"AZs":[]}` }, oof.StepCapacity, "no room"},
		"gone": {"multicloud may not know the region", func(r *region) { r.status = http.StatusNotFound }, oof.StepCapacity, "status 404"},
		"down": {"a cluster may be unreachable", func(r *region) { r.status, r.capacity = http.StatusInternalServerError, `{"result":false,"error":"x"}` }, oof.StepCapacity, "status 500"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong, other := right("a"), right("c")
			tc.spoil(&wrong)
			other.version = ""
			if tc.step == oof.StepRegion {
				other = right("c").without("basicCapabilities")
			}
			w := newWorld(t, wrong, right("b"), other)
			got, err := w.Place(t.Context(), fits())
			if err != nil || got.Owner != "k8s" || got.Region != "b" || len(got.Rejected) != 2 {
				t.Fatalf("%s: got %+v, %v; want region b", tc.reason, got, err)
			}
			if first := got.Rejected[0]; first.Region != "a" || first.Step != tc.step || !strings.Contains(first.Reason, tc.want) {
				t.Errorf("%s: got %+v, want the step %s and %q", tc.reason, first, tc.step, tc.want)
			}
			if got.Rejected[1].Step == got.Rejected[0].Step {
				t.Errorf("both regions are rejected at the same step: %+v", got.Rejected)
			}
			if checks := len(w.checks); checks != map[bool]int{true: 2, false: 1}[tc.step == oof.StepCapacity] {
				t.Errorf("%s: the capacity is checked of regions that are left only, got %q", tc.reason, w.checks)
			}
			w.wantNoViolations(tc.reason)
		})
	}
}

// TestAttributes compares one attribute of a flavor with a wanted one.
func TestAttributes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		want     oof.Attribute
		have     string
		fits     bool
		violates bool
	}{
		"equal":           {"numbers are equal", oof.Attribute{Operator: "=", Value: "4"}, `{"value":"4"}`, true, false},
		"equal units":     {"1024 MB are 1 GB", oof.Attribute{Operator: "=", Value: "1", Unit: "GB"}, `{"value":"1024","unit":"MB"}`, true, false},
		"leading zero":    {"digits are a number", oof.Attribute{Operator: "=", Value: "04"}, `{"value":"4"}`, true, false},
		"without unit":    {"a unit is not assumed", oof.Attribute{Operator: "=", Value: "2", Unit: "MB"}, `{"value":"2"}`, false, false},
		"unknown unit":    {"an unknown unit is ignored", oof.Attribute{Operator: "=", Value: "2", Unit: "TB"}, `{"value":"2"}`, true, false},
		"kilobytes":       {"a KB has 1024 bytes", oof.Attribute{Operator: "=", Value: "2048"}, `{"value":"2","unit":"KB"}`, true, false},
		"text":            {"texts are equal", oof.Attribute{Operator: "=", Value: "dedicated"}, `{"value":"dedicated"}`, true, false},
		"another text":    {"or not", oof.Attribute{Operator: "=", Value: "dedicated"}, `{"value":"shared"}`, false, false},
		"text and number": {"a text is not a number", oof.Attribute{Operator: "=", Value: "4"}, `{"value":"4.0"}`, false, false},
		"text order":      {"texts have no order", oof.Attribute{Operator: ">=", Value: "a"}, `{"value":"b"}`, false, false},
		"less":            {"the flavor has less", oof.Attribute{Operator: "<", Value: "4"}, `{"value":"3"}`, true, false},
		"not less":        {"equal is not less", oof.Attribute{Operator: "<", Value: "4"}, `{"value":"4"}`, false, false},
		"at most":         {"equal is at most", oof.Attribute{Operator: "<=", Value: "4"}, `{"value":"4"}`, true, false},
		"more":            {"the flavor has more, by number, not by text", oof.Attribute{Operator: ">", Value: "9"}, `{"value":"10"}`, true, false},
		"not more":        {"equal is not more", oof.Attribute{Operator: ">", Value: "4"}, `{"value":"4"}`, false, false},
		"at least":        {"GB and MB are compared", oof.Attribute{Operator: ">=", Value: "8", Unit: "GB"}, `{"value":"8192","unit":"MB"}`, true, false},
		"large":           {"numbers have no limit", oof.Attribute{Operator: ">", Value: "99999999999999999999", Unit: "GB"}, `{"value":"99999999999999999999","unit":"MB"}`, false, false},
		"all":             {"a list may have more", oof.Attribute{Operator: "ALL", List: []string{"b", "a"}}, `{"value":["a","b","c"]}`, true, false},
		"not all":         {"but not less", oof.Attribute{Operator: "ALL", List: []string{"b", "d"}}, `{"value":["a","b","c"]}`, false, false},
		"all of a text":   {"ALL is for lists", oof.Attribute{Operator: "ALL", List: []string{"b"}}, `{"value":"b"}`, false, false},
		"list":            {"others are not", oof.Attribute{Operator: "=", Value: "b"}, `{"value":["b"]}`, false, false},
		"number":          {"HAS fails on a number in JSON", oof.Attribute{Operator: "=", Value: "4"}, `{"value":4}`, false, true},
		"plain":           {"a value without JSON has no value", oof.Attribute{Operator: "=", Value: "4"}, `4`, false, true},
		"no value":        {"nor has an object without one", oof.Attribute{Operator: "=", Value: "4"}, `{"unit":"MB"}`, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, only("a", "f", capability{"x", "generic", "v1", map[string]string{"k": tc.have}}))
			tc.want.Key = "k"
			_, err := w.Place(t.Context(), oof.Demand{VDUs: []oof.VDU{{ID: "v", Parameter: "p", Requirements: []oof.Requirement{
				{Feature: "x", Architecture: "generic", Version: "v1", Mandatory: true, Attributes: []oof.Attribute{tc.want}},
			}}}})
			if tc.fits != (err == nil) || !tc.fits && !errors.Is(err, oof.ErrNoSolution) {
				t.Errorf("%s: got %v, want that it fits: %t", tc.reason, err, tc.fits)
			}
			if wrong := w.Violations(); tc.violates != (len(wrong) > 0) {
				t.Errorf("%s: got the violations %q, want some: %t", tc.reason, wrong, tc.violates)
			}
		})
	}
}

// TestScore places two VDUs in two regions that fit: optional features decide about the
// flavor of each, and their sum about the region.
func TestScore(t *testing.T) {
	t.Parallel()
	basic := capability{"basicCapabilities", "generic", "v1", nil}
	numa, pages := capability{"numa", "generic", "v1", nil}, capability{"hugePages", "generic", "v1", nil}
	rich, equal := only("b", "plain", basic), only("c", "plain", basic)
	more := []flavor{{"numa", []capability{basic, numa}}, {"both", []capability{basic, numa, pages}}, {"same", []capability{basic, numa, pages}}}
	rich.flavors, equal.flavors = append(rich.flavors, more...), append(equal.flavors, more...)
	w := newWorld(t, only("a", "plain", basic), rich, equal)
	want := func(feature string, score int) oof.Requirement {
		return oof.Requirement{Feature: feature, Architecture: "generic", Version: "v1", Mandatory: score == 0, Score: score}
	}
	got, err := w.Place(t.Context(), oof.Demand{VDUs: []oof.VDU{
		{ID: "vgw", Parameter: "vgw_flavor", Requirements: []oof.Requirement{want("basicCapabilities", 0), want("numa", 5), want("hugePages", 2)}},
		{ID: "vdns", Parameter: "vdns_flavor", Requirements: []oof.Requirement{
			want("basicCapabilities", 0), {
				Feature: "ovsDpdk", Architecture: "Intel64", Version: "v1", Score: 9,
				Directives: []oof.Directive{{Type: "sriovNICNetwork_directives", Attributes: []oof.Parameter{{Name: "oam", Value: "direct"}}}},
			},
		}},
	}})
	if err != nil || got.Region != "b" || got.Score != 7 {
		t.Fatalf("got %+v, %v; want region b with the score 7", got, err)
	}
	for i, want := range []string{"k8s/b has the score 7, this one 0", "k8s/b has the score 7, this one 7"} {
		if r := got.Rejected[i]; r.Step != oof.StepScore || r.Reason != want {
			t.Errorf("rejected: %+v, want %q", r, want)
		}
	}
	directives, err := json.Marshal(got.Directives())
	if err != nil {
		t.Fatal(err)
	}
	const form = `{"directives":[` +
		`{"id":"vgw","type":"vnfc","directives":[{"type":"flavor_directives","attributes":[{"attribute_name":"vgw_flavor","attribute_value":"both"}]}]},` +
		`{"id":"vdns","type":"vnfc","directives":[{"type":"flavor_directives","attributes":[{"attribute_name":"vdns_flavor","attribute_value":"plain"}]},` +
		`{"type":"sriovNICNetwork_directives","attributes":[{"attribute_name":"oam","attribute_value":"direct"}]}]}]}`
	if diff := cmp.Diff(form, string(directives)); diff != "" {
		t.Errorf("oof_directives differ (-want +got):\n%s", diff)
	}
	values := []map[string]any{{"vgw_flavor": "both", "vdns_flavor": "plain", "oam": "direct", "directives": got.Directives().Directives}}
	if diff := cmp.Diff(values, got.Parameters()); diff != "" {
		t.Errorf("oof_parameters differ (-want +got):\n%s", diff)
	}
	w.wantNoViolations("scores")
}

// TestRequests reads the requests of one placement.
func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, right("a"))
	if _, err := w.Place(t.Context(), fits()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range w.aai.Journal() {
		got = append(got, e.AppID+" "+e.Method+" "+e.URI)
	}
	want := []string{
		"CONDUCTOR GET /aai/v30/cloud-infrastructure/cloud-regions/?depth=0",
		"CONDUCTOR GET /aai/v30/cloud-infrastructure/complexes/complex/a",
		"CONDUCTOR GET /aai/v30/cloud-infrastructure/cloud-regions/cloud-region/k8s/a/flavors/?depth=all&nodes-only=true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the requests to A&AI differ (-want +got):\n%s", diff)
	}
}

// TestDemands rejects demands before anything is asked.
func TestDemands(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spoil  func(*oof.Demand)
	}{
		"none":          {"a demand is of something", func(d *oof.Demand) { d.VDUs = nil }},
		"id":            {"directives name VDUs", func(d *oof.Demand) { d.VDUs[0].ID = "" }},
		"twice":         {"each has its own id", func(d *oof.Demand) { d.VDUs = append(d.VDUs, d.VDUs[0]) }},
		"parameter":     {"a flavor goes somewhere", func(d *oof.Demand) { d.VDUs[0].Parameter = "" }},
		"capacity":      {"an amount is not negative", func(d *oof.Demand) { d.Capacity.Memory = -1 }},
		"feature":       {"a requirement has a feature", func(d *oof.Demand) { d.VDUs[0].Requirements[0].Feature = "" }},
		"architecture":  {"and an architecture", func(d *oof.Demand) { d.VDUs[0].Requirements[0].Architecture = "" }},
		"version":       {"and a version", func(d *oof.Demand) { d.VDUs[0].Requirements[0].Version = "" }},
		"score":         {"mandatory requirements have none", func(d *oof.Demand) { d.VDUs[0].Requirements[0].Score = 1 }},
		"operator":      {"HAS has six operators", func(d *oof.Demand) { d.VDUs[0].Requirements[0].Attributes[0].Operator = "!=" }},
		"value":         {"an attribute has a value", func(d *oof.Demand) { d.VDUs[0].Requirements[0].Attributes[0].Value = "" }},
		"list":          {"ALL has a list", func(d *oof.Demand) { d.VDUs[0].Requirements[2].Attributes[0].List = nil }},
		"value of list": {"and no value", func(d *oof.Demand) { d.VDUs[0].Requirements[2].Attributes[0].Value = "a" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, right("a"))
			d := fits()
			tc.spoil(&d)
			if got, err := w.Place(t.Context(), d); err == nil || errors.Is(err, oof.ErrNoSolution) {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
			if asked := w.aai.Journal(); len(asked) > 0 {
				t.Errorf("%s: A&AI was asked: %+v", tc.reason, asked)
			}
		})
	}
}

// TestCapacities has multicloud respond to capacity_check in wrong ways.
func TestCapacities(t *testing.T) {
	t.Parallel()
	const zone = `{"availability-zone-name":"z","vCPUTotal":4,"vCPUAvail":3,"MemoryTotal":9,"MemoryAvail":9,"StorageTotal":99,"StorageAvail":99}`
	cases := map[string]struct {
		reason   string
		response string
		chosen   bool
		violates bool
	}{
		"plain":        {"plugins of the first version have no zones", `{"result":true}`, true, false},
		"no":           {"one zone must have all", `{"result":false,"AZs":[` + zone + `]}`, false, false},
		"contradicted": {"it has 3 of 4 CPUs", `{"result":true,"AZs":[` + zone + `]}`, true, true},
		"denied":       {"it has 4 CPUs", `{"result":false,"AZs":[` + strings.Replace(zone, "3", "4", 1) + `]}`, false, true},
		"incomplete":   {"a zone has all amounts", `{"result":true,"AZs":[` + strings.Replace(zone, "vCPUAvail", "CPUAvail", 1) + `]}`, true, true},
		"empty":        {"a response has a result", `{}`, false, true},
		"text":         {"a response is JSON", `yes`, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := right("a")
			r.capacity = tc.response
			w := newWorld(t, r)
			got, err := w.Place(t.Context(), fits())
			if tc.chosen != (err == nil) || !tc.chosen && got.Rejected[0].Step != oof.StepCapacity {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
			if wrong := w.Violations(); tc.violates != (len(wrong) > 0) {
				t.Errorf("%s: got the violations %q, want some: %t", tc.reason, wrong, tc.violates)
			}
		})
	}
}

// TestPeers has peers fail.
func TestPeers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, right("a"))
	w.aai.Script(aai.Fault{Path: "/flavors/", Status: http.StatusServiceUnavailable})
	if _, err := w.Place(t.Context(), fits()); err == nil || errors.Is(err, oof.ErrNoSolution) {
		t.Errorf("got %v, want an error of A&AI", err)
	}
	limited, err := oof.New(oof.Config{AAI: w.aaiURL, User: "oof", Password: "p", Multicloud: w.aaiURL, Allow: func(owner, id string) bool { return owner+id != "k8sa" }})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := limited.Place(t.Context(), fits()); !errors.Is(err, oof.ErrNoSolution) || len(got.Rejected) > 0 {
		t.Errorf("got %+v, %v, want that no region is allowed", got, err)
	}
	if _, err := oof.New(oof.Config{AAI: "x", User: "u"}); err == nil {
		t.Error("a simulator without multicloud is made")
	}
}

// TestScript takes faults, and reads the journal.
func TestScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t, right("a"))
	down, ran := errors.New("down"), false
	w.Script(
		oof.Fault{Err: down}, oof.Fault{Before: func() { ran = true }, Edit: func(s *oof.Solution) { s.Region = "elsewhere" }},
		oof.Fault{Delay: time.Hour, Times: -1},
	)
	if _, err := w.Place(t.Context(), fits()); !errors.Is(err, down) {
		t.Errorf("got %v, want the fault", err)
	}
	if got, err := w.Place(t.Context(), fits()); err != nil || !ran || got.Region != "elsewhere" {
		t.Errorf("got %+v, %v, want the edited result", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Place(ended, fits()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the caller has left", err)
	}
	w.Repair()
	if got, err := w.Place(t.Context(), fits()); err != nil || got.Region != "a" {
		t.Errorf("got %+v, %v, want region a", got, err)
	}
	journal := w.Journal()
	if len(journal) != 4 || journal[0].Err == nil || journal[3].Solution.Region != "a" || len(journal[3].Demand.VDUs) != 1 {
		t.Errorf("the journal has %+v", journal)
	}
}
