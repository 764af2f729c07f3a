package telemetry_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// TestManyRegions bounds the size of a scrape: each region has its own series,
// however many methods and statuses its requests have.
func TestManyRegions(t *testing.T) {
	const regions = 1000
	m, registry := newMetrics(t)
	states := map[string]nf.RegionState{}
	for i := range regions {
		id := fmt.Sprintf("region-%04d", i)
		states[id] = nf.RegionState{Condition: nf.RegionAvailable, Since: time.Now(), Checked: time.Now()}
		for _, verb := range []string{"get", "post", "put", "patch", "delete", "watch"} {
			for _, code := range []int{200, 404, 503, 0} {
				m.RegionRequest(id, verb, code, map[int]string{503: nf.ReasonUnavailable, 0: nf.ReasonTCP}[code], time.Second)
			}
		}
	}
	watch(t, m, telemetry.Sources{Regions: func() map[string]nf.RegionState { return states }})
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	own := map[string]int{}
	for line := range strings.Lines(w.Body.String()) {
		if _, after, ok := strings.Cut(line, `region="`); ok {
			id, _, _ := strings.Cut(after, `"`)
			own[id]++
		}
	}
	t.Logf("%d bytes, %d series of the first region", w.Body.Len(), own["region-0000"])
	if len(own) != regions {
		t.Errorf("%d regions have series, want %d", len(own), regions)
	}
	// 9 gauges, the requests, their time, and the failures by two reasons.
	const most = 13
	for id, n := range own {
		if n != most {
			t.Fatalf("%s has %d series, want %d: methods and statuses must not multiply with regions", id, n, most)
		}
	}
	if w.Body.Len() > 1<<20 {
		t.Errorf("a scrape has %d bytes, want at most 1 MiB", w.Body.Len())
	}
}

func TestRegionsThatAreGoneAreForgotten(t *testing.T) {
	m, registry := newMetrics(t)
	regions := map[string]nf.RegionState{"east": {}, "west": {}}
	watch(t, m, telemetry.Sources{Regions: func() map[string]nf.RegionState { return regions }})
	use := func(region string) {
		m.RegionRequest(region, "get", 0, "tcp", time.Second)
		m.Finished(nf.Operation{Verb: nf.Upgrade, State: nf.Succeeded, Region: region})
	}
	bearing := func(region string) int {
		all := slices.Collect(maps.Keys(series(t, registry)))
		return len(slices.DeleteFunc(all, func(s string) bool { return !strings.Contains(s, "region="+region) }))
	}
	use("east")
	use("west")
	whole := bearing("east")
	if whole < 10 {
		t.Fatalf("region east has %d series, want those of requests, operations and gauges", whole)
	}

	regions = nil
	for range 3 {
		if got := bearing("west"); got != 4 {
			t.Fatalf("region west has %d series, want the 4 of requests and operations: a region stays while the regions are unknown", got)
		}
	}
	regions = map[string]nf.RegionState{"east": {}}
	if got := bearing("west"); got != 4 {
		t.Errorf("region west has %d series at the first look that misses it, want 4: a new one may not be known yet", got)
	}
	bearing("west") // the second look removes them
	if got := bearing("west"); got != 0 {
		t.Errorf("region west has %d series though it is gone, want none", got)
	}
	if got := bearing("east"); got != whole {
		t.Errorf("region east has %d series, want %d: it is still there", got, whole)
	}

	use("west") // an operation that outlived its region, or a new region of that name
	bearing("west")
	bearing("west")
	if got := bearing("west"); got != 0 {
		t.Errorf("region west has %d series again, want none: it has not come back", got)
	}
}

func TestMissedRegionThatComesBack(t *testing.T) {
	m, registry := newMetrics(t)
	regions := map[string]nf.RegionState{}
	watch(t, m, telemetry.Sources{Regions: func() map[string]nf.RegionState { return regions }})
	m.RegionRequest("east", "get", 200, "", time.Second)
	const name = "k8splugin_region_requests_total{region=east}"
	for range 3 { // missed, seen, missed, …: never twice in a row
		series(t, registry)
		regions["east"] = nf.RegionState{}
		series(t, registry)
		delete(regions, "east")
	}
	if got := series(t, registry)[name]; got != 1 {
		t.Errorf("%s is %v, want 1: two looks in a row must miss a region before it is gone", name, got)
	}
}
