package telemetry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
