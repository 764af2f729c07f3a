package telemetry_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

func TestMetricsMove(t *testing.T) {
	accepted := time.Unix(1_000, 0)
	cases := map[string]struct {
		reason string
		do     func(*telemetry.Metrics)
		want   map[string]float64
	}{
		"Operation": {"an operation counts once, with all the time since it was accepted", func(m *telemetry.Metrics) {
			m.Finished(nf.Operation{Verb: nf.Upgrade, State: nf.OperationFailed, Region: "east", Accepted: accepted, Finished: accepted.Add(90 * time.Second)})
		}, map[string]float64{
			"k8splugin_operations_total{region=east,state=failed,verb=upgrade}":     1,
			"k8splugin_operation_duration_seconds_count{state=failed,verb=upgrade}": 1,
			"k8splugin_operation_duration_seconds_sum{state=failed,verb=upgrade}":   90,
		}},
		"OwnLease": {"the loss of one's own lease is told from the loss of a replica", func(m *telemetry.Metrics) {
			m.LeaseEnded(true)
		}, map[string]float64{"k8splugin_lease_losses_total": 1}},
		"OtherLease": {"and the other way round", func(m *telemetry.Metrics) {
			m.LeaseEnded(false)
		}, map[string]float64{"k8splugin_replicas_lost_total": 1}},
		"Takeover": {"each operation that is taken over counts", func(m *telemetry.Metrics) {
			m.Resumed(nf.Operation{})
			m.Resumed(nf.Operation{})
		}, map[string]float64{"k8splugin_takeovers_total": 2}},
		"Request": {"a request that the region granted is no failure", func(m *telemetry.Metrics) {
			m.RegionRequest("east", http.MethodPatch, http.StatusCreated, "", 2*time.Second)
		}, map[string]float64{
			"k8splugin_region_request_duration_seconds_count{code=2xx,verb=patch}": 1,
			"k8splugin_region_request_duration_seconds_sum{code=2xx,verb=patch}":   2,
			"k8splugin_region_requests_total{region=east}":                         1,
			"k8splugin_region_request_seconds_total{region=east}":                  2,
		}},
		"RequestRefused": {"what the region rightly refused is no failure either", func(m *telemetry.Metrics) {
			m.RegionRequest("east", "get", http.StatusNotFound, "", time.Second)
		}, map[string]float64{
			"k8splugin_region_request_duration_seconds_count{code=4xx,verb=get}": 1,
			"k8splugin_region_request_duration_seconds_sum{code=4xx,verb=get}":   1,
			"k8splugin_region_requests_total{region=east}":                       1,
			"k8splugin_region_request_seconds_total{region=east}":                1,
		}},
		"RequestUnanswered": {"a request without an answer has no status, and a reason", func(m *telemetry.Metrics) {
			m.RegionRequest("east", "WATCH", 0, "dns", time.Second)
		}, map[string]float64{
			"k8splugin_region_request_duration_seconds_count{code=none,verb=watch}": 1,
			"k8splugin_region_request_duration_seconds_sum{code=none,verb=watch}":   1,
			"k8splugin_region_requests_total{region=east}":                          1,
			"k8splugin_region_request_seconds_total{region=east}":                   1,
			"k8splugin_region_request_failures_total{reason=dns,region=east}":       1,
		}},
		"RequestHeldBack": {"a request that was not sent took no time, and would make the region look fast", func(m *telemetry.Metrics) {
			m.RegionRequest("east", http.MethodGet, 0, "breaker", 0)
		}, map[string]float64{"k8splugin_region_request_failures_total{reason=breaker,region=east}": 1}},
		"RequestGivenUp": {"what we gave up ourselves says nothing of the region", func(m *telemetry.Metrics) {
			m.RegionRequest("east", http.MethodGet, 0, "cancelled", time.Hour)
			m.RegionRequest("east", http.MethodGet, 0, "replaced", 0)
		}, map[string]float64{}},
		"RequestUnheardOf": {"words that nobody knows make no series of their own", func(m *telemetry.Metrics) {
			m.RegionRequest("east", "frobnicate", 999, "moon phase", time.Second)
			m.RegionRequest("east", "defrobnicate", -1, "sun spots", time.Second)
		}, map[string]float64{
			"k8splugin_region_request_duration_seconds_count{code=none,verb=other}": 2,
			"k8splugin_region_request_duration_seconds_sum{code=none,verb=other}":   2,
			"k8splugin_region_requests_total{region=east}":                          2,
			"k8splugin_region_request_seconds_total{region=east}":                   2,
			"k8splugin_region_request_failures_total{reason=other,region=east}":     2,
		}},
		"Store": {"a request to the store is told by method and outcome", func(m *telemetry.Metrics) {
			m.StoreRequest("put", "conflict", 3*time.Second)
		}, map[string]float64{
			"k8splugin_store_request_duration_seconds_count{method=put,outcome=conflict}": 1,
			"k8splugin_store_request_duration_seconds_sum{method=put,outcome=conflict}":   3,
		}},
		"Notification": {"a notification is told by what became of it", func(m *telemetry.Metrics) { m.Notified("abandoned") },
			map[string]float64{"k8splugin_notifications_total{outcome=abandoned}": 1}},
		"Import": {"a region of A&AI is told by what became of it", func(m *telemetry.Metrics) { m.RegionImported("imported") },
			map[string]float64{"k8splugin_aai_region_imports_total{result=imported}": 1}},
		"Audit": {"an entry that is lost counts", (*telemetry.Metrics).AuditFailed, map[string]float64{"k8splugin_audit_failures_total": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, registry := newMetrics(t)
			got := moved(t, registry, func() { tc.do(m) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSourcesAreShown(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble's time
	unix := float64(start.Unix())
	cases := map[string]struct {
		reason  string
		sources telemetry.Sources
		want    map[string]float64
	}{
		"Nothing": {"what has no source is not shown", telemetry.Sources{}, map[string]float64{}},
		"NoOperations": {"an idle service has zeros, so that alerts see it", telemetry.Sources{
			Operations: func() []nf.Operation { return nil },
		}, map[string]float64{
			"k8splugin_operations_overdue":                          0,
			"k8splugin_operation_oldest_age_seconds{state=queued}":  0,
			"k8splugin_operation_oldest_age_seconds{state=running}": 0,
			"k8splugin_operation_oldest_age_seconds{state=waiting}": 0,
		}},
		"Operations": {"an operation that waits is not running, and the oldest of a state gives its age", telemetry.Sources{
			Operations: func() []nf.Operation {
				return []nf.Operation{
					{State: nf.Queued, Region: "east", Accepted: start.Add(-3 * time.Second)},
					{State: nf.Queued, Region: "east", Accepted: start.Add(-9 * time.Second)},
					{State: nf.Running, Region: "west", Accepted: start.Add(-time.Hour), Started: start.Add(-5 * time.Second)},
					{State: nf.Running, Region: "west", Started: start.Add(-time.Hour), Waiting: &nf.Wait{Since: start.Add(-7 * time.Second)}},
				}
			},
		}, map[string]float64{
			"k8splugin_operations_unfinished{region=east,state=queued}":  2,
			"k8splugin_operations_unfinished{region=west,state=running}": 1,
			"k8splugin_operations_unfinished{region=west,state=waiting}": 1,
			"k8splugin_operations_overdue":                               0,
			"k8splugin_operation_oldest_age_seconds{state=queued}":       9,
			"k8splugin_operation_oldest_age_seconds{state=running}":      5,
			"k8splugin_operation_oldest_age_seconds{state=waiting}":      7,
		}},
		"Overdue": {"an operation is late by its own deadline, its undo by its own, and a patient one never", telemetry.Sources{
			Operations: func() []nf.Operation {
				return []nf.Operation{
					{State: nf.Running, Region: "east", Started: start, Deadline: start.Add(-time.Second)},
					{State: nf.Running, Region: "east", Started: start, Deadline: start.Add(time.Second)},
					{State: nf.Running, Region: "east", Started: start, Deadline: start.Add(-time.Second), WaitForRegion: true},
					{State: nf.Running, Region: "east", Started: start, Deadline: start.Add(-time.Minute), Undoing: true, UndoBy: start.Add(time.Second)},
					{State: nf.Running, Region: "east", Started: start, Deadline: start.Add(-time.Minute), Undoing: true, UndoBy: start.Add(-time.Second)},
				}
			},
		}, map[string]float64{
			"k8splugin_operations_unfinished{region=east,state=running}": 5,
			"k8splugin_operations_overdue":                               2,
			"k8splugin_operation_oldest_age_seconds{state=queued}":       0,
			"k8splugin_operation_oldest_age_seconds{state=running}":      0,
			"k8splugin_operation_oldest_age_seconds{state=waiting}":      0,
		}},
		"Instances": {"instances are counted by state and health", telemetry.Sources{Instances: func() []nf.InstanceCount {
			return []nf.InstanceCount{{Region: "east", State: nf.Ready, Health: nf.Unhealthy, Number: 3}, {Region: "east", State: nf.Ready, Health: nf.Healthy, Number: 5}}
		}}, map[string]float64{
			"k8splugin_instances{health=unhealthy,region=east,state=ready}": 3, "k8splugin_instances{health=healthy,region=east,state=ready}": 5,
		}},
		"Networks": {"networks are counted by driver and state", telemetry.Sources{Networks: func() []nf.SharedCount {
			return []nf.SharedCount{{Region: "east", Driver: "multus", State: nf.SharedActive, Number: 3}, {Region: "east", Driver: "ovn", State: nf.SharedFailed, Number: 1}}
		}}, map[string]float64{
			"k8splugin_networks{driver=multus,region=east,state=active}": 3, "k8splugin_networks{driver=ovn,region=east,state=failed}": 1,
		}},
		"Volumes": {"volumes are counted by state", telemetry.Sources{Volumes: func() []nf.SharedCount {
			return []nf.SharedCount{{Region: "east", State: nf.SharedActive, Number: 2}}
		}}, map[string]float64{"k8splugin_volumes{region=east,state=active}": 2}},
		"Listings": {"what A&AI has is counted by state", telemetry.Sources{Listings: func() map[nf.ListingState]int {
			return map[nf.ListingState]int{nf.ListingParked: 2}
		}}, map[string]float64{"k8splugin_aai_subjects{state=parked}": 2}},
		"Drift": {"instances are counted by policy and drift", telemetry.Sources{Drifts: func() []nf.DriftCount {
			return []nf.DriftCount{{Region: "east", Mode: nf.DriftWarn, State: nf.Drifted, Number: 2}}
		}}, map[string]float64{"k8splugin_instances_drift{mode=warn,region=east,state=drifted}": 2}},
		"Alarms": {"alarms are counted by severity and acknowledgement", telemetry.Sources{Alarms: func() []nf.AlarmCount {
			return []nf.AlarmCount{{Severity: nf.AlarmCritical, Number: 2}, {Severity: nf.AlarmCritical, Acknowledged: true, Number: 1}, {Severity: nf.AlarmMajor}}
		}}, map[string]float64{
			"k8splugin_vnf_alarms{acknowledged=false,severity=critical}": 2, "k8splugin_vnf_alarms{acknowledged=true,severity=critical}": 1,
			"k8splugin_vnf_alarms{acknowledged=false,severity=major}": 0,
		}},
		"NoAlarms":    {"a replica that raises no alarms does not count them", telemetry.Sources{Alarms: func() []nf.AlarmCount { return nil }}, map[string]float64{}},
		"Queue":       {"the queue has a length", telemetry.Sources{Queue: func() int { return 4 }}, map[string]float64{"k8splugin_queue_depth": 4}},
		"Replicas":    {"the replicas are counted", telemetry.Sources{Replicas: func() int { return 3 }}, map[string]float64{"k8splugin_replicas_alive": 3}},
		"Certificate": {"the certificate expires", telemetry.Sources{Certificate: func() time.Time { return start }}, map[string]float64{"k8splugin_tls_certificate_expiry_timestamp_seconds": unix}},
		"Plain":       {"a service without TLS has no certificate that could expire in 1970", telemetry.Sources{Certificate: func() time.Time { return time.Time{} }}, map[string]float64{}},
		"Mesh": {"the certificate from istiod has an age, and requests may fail", telemetry.Sources{Mesh: func() telemetry.MeshCertificate {
			return telemetry.MeshCertificate{Obtained: start, Expires: start, Failures: 2}
		}}, map[string]float64{
			"k8splugin_istio_certificate_obtained_timestamp_seconds": unix, "k8splugin_istio_certificate_expiry_timestamp_seconds": unix, "k8splugin_istio_certificate_failures_total": 2,
		}},
		"NoMesh": {"before the first certificate, there are only failures", telemetry.Sources{Mesh: func() telemetry.MeshCertificate { return telemetry.MeshCertificate{} }}, map[string]float64{
			"k8splugin_istio_certificate_failures_total": 0,
		}},
		"Sealed": {"records are counted by key", telemetry.Sources{Sealed: func() map[string]int { return map[string]int{"a": 1, "b": 0} }}, map[string]float64{"k8splugin_encrypted_records{key=a}": 1, "k8splugin_encrypted_records{key=b}": 0}},
		"Store": {"a store has a size, and may be full", telemetry.Sources{Store: func() telemetry.StoreSpace {
			return telemetry.StoreSpace{Size: 80, InUse: 60, Quota: 100, Compacted: start, Full: true}
		}}, map[string]float64{
			"k8splugin_store_size_bytes": 80, "k8splugin_store_in_use_bytes": 60, "k8splugin_store_quota_bytes": 100,
			"k8splugin_store_full": 1, "k8splugin_store_compaction_timestamp_seconds": unix,
		}},
		"OldStore": {"what it does not report is not 0", telemetry.Sources{Store: func() telemetry.StoreSpace {
			return telemetry.StoreSpace{Size: 80, InUse: 60}
		}}, map[string]float64{"k8splugin_store_size_bytes": 80, "k8splugin_store_in_use_bytes": 60, "k8splugin_store_full": 0}},
		"Targets": {"targets are counted by their breaker", telemetry.Sources{Targets: func() map[nf.BreakerState]int {
			return map[nf.BreakerState]int{nf.BreakerClosed: 2, nf.BreakerOpen: 0}
		}}, map[string]float64{"k8splugin_notification_targets{state=closed}": 2, "k8splugin_notification_targets{state=open}": 0}},
		"Index": {"a table is in use or not", telemetry.Sources{Index: func() map[string]telemetry.IndexStatus {
			return map[string]telemetry.IndexStatus{"instances": {Records: 7, Filled: true}, "audit": {}}
		}}, map[string]float64{
			"k8splugin_index_records{table=instances}": 7, "k8splugin_index_filled{table=instances}": 1,
			"k8splugin_index_records{table=audit}": 0, "k8splugin_index_filled{table=audit}": 0,
		}},
		"NewStore": {"nothing is known yet", telemetry.Sources{Store: func() telemetry.StoreSpace { return telemetry.StoreSpace{} }}, map[string]float64{}},
		"Broken":   {"files that cannot be used are counted by what they hold", telemetry.Sources{Broken: func() map[string]int64 { return map[string]int64{"rules": 2} }}, map[string]float64{"k8splugin_access_reload_failures_total{file=rules}": 2}},
		"Garbled":  {"a label that is no text does not fail the scrape", telemetry.Sources{Sealed: func() map[string]int { return map[string]int{"a\xff": 1} }}, map[string]float64{"k8splugin_encrypted_records{key=a?}": 1}},
		"NewRegion": {"a region that was never asked is unknown, and has no times", telemetry.Sources{
			Regions: func() map[string]nf.RegionState { return map[string]nf.RegionState{"east": {}} },
		}, regionWith("unknown", "closed", nil)},
		"Region": {"a region is in one condition, its breaker in one state", telemetry.Sources{
			Regions: func() map[string]nf.RegionState {
				return map[string]nf.RegionState{"east": {
					Condition: nf.RegionUnreachable, Breaker: nf.BreakerHalfOpen, Since: start, Checked: start.Add(1500 * time.Millisecond),
					Credential: nf.Credential{Expires: start.Add(time.Hour)},
				}}
			},
		}, regionWith("unreachable", "half-open", map[string]float64{
			"k8splugin_region_condition_since_timestamp_seconds{region=east}":   unix,
			"k8splugin_region_checked_timestamp_seconds{region=east}":           unix + 1.5,
			"k8splugin_region_credential_expiry_timestamp_seconds{region=east}": unix + 3600,
		})},
		"Rotates": {"a credential that is renewed does not expire", telemetry.Sources{
			Regions: func() map[string]nf.RegionState {
				return map[string]nf.RegionState{"east": {Condition: nf.RegionAvailable, Credential: nf.Credential{Expires: start.Add(time.Hour), Rotates: true}}}
			},
		}, regionWith("available", "closed", nil)},
		"NotRenewed": {"one that should be renewed does", telemetry.Sources{
			Regions: func() map[string]nf.RegionState {
				return map[string]nf.RegionState{"east": {Condition: nf.RegionExpiring, Credential: nf.Credential{Expires: start.Add(time.Hour), Rotates: true, Failing: start}}}
			},
		}, regionWith("expiring", "closed", map[string]float64{
			"k8splugin_region_credential_expiry_timestamp_seconds{region=east}":                unix + 3600,
			"k8splugin_region_credential_renewal_failing_since_timestamp_seconds{region=east}": unix,
		})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, registry := newMetrics(t)
				got := moved(t, registry, func() { watch(t, m, tc.sources) })
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// regionWith returns the series of region east in a condition.
func regionWith(condition, breaker string, more map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for _, c := range []string{"unknown", "available", "expiring", "unreachable"} {
		out[fmt.Sprintf("k8splugin_region_condition{condition=%s,region=east}", c)] = 0
	}
	for _, b := range []string{"closed", "half-open", "open"} {
		out[fmt.Sprintf("k8splugin_region_breaker_state{region=east,state=%s}", b)] = 0
	}
	out[fmt.Sprintf("k8splugin_region_condition{condition=%s,region=east}", condition)] = 1
	out[fmt.Sprintf("k8splugin_region_breaker_state{region=east,state=%s}", breaker)] = 1
	maps.Copy(out, more)
	return out
}

func TestBuildInfo(t *testing.T) {
	_, registry := newMetrics(t)
	want := "k8splugin_build_info{go_version=" + runtime.Version() + ",version=v1.2.3}"
	if got := series(t, registry)[want]; got != 1 {
		t.Errorf("%s is %v, want 1: dashboards show the version by it", want, got)
	}
}

func TestMetricsAreWellNamed(t *testing.T) {
	all := slices.Collect(maps.Values(families(t, busy(t))))
	if len(all) < 20 {
		t.Fatalf("there are %d metrics, want all of them", len(all))
	}
	problems, err := promlint.NewWithMetricFamilies(all).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestOpenMetrics looks at the newer of the two formats, in which a counter
// loses its _total and may meet another metric.
func TestOpenMetrics(t *testing.T) {
	registry := busy(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text") {
		t.Fatalf("the answer is %d %s, want OpenMetrics", w.Code, w.Header().Get("Content-Type"))
	}
	seen := map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "# TYPE k8splugin_") {
			continue
		}
		if name := strings.Fields(line)[2]; seen[name] {
			t.Errorf("%s is declared twice", name)
		} else {
			seen[name] = true
		}
	}
	if len(seen) < 20 {
		t.Errorf("%d metrics are declared, want all of them", len(seen))
	}
}

func TestMetricsRefuse(t *testing.T) {
	m, registry := newMetrics(t)
	queue := telemetry.Sources{Queue: func() int { return 0 }}
	watch(t, m, queue)
	if err := m.Watch(queue); err == nil {
		t.Error("Watch accepted the same source twice: one of them would never be asked")
	}
	if _, err := telemetry.NewMetrics(registry, "v1"); err == nil {
		t.Error("NewMetrics accepted a registry that has them already")
	}
	if _, err := telemetry.NewMetrics(nil, "v1"); err == nil {
		t.Error("NewMetrics accepted no registry: nobody would see the metrics")
	}
}

// TestScrapesTogether lets the race detector look at scrapes that meet each
// other and what they measure.
func TestScrapesTogether(t *testing.T) {
	m, registry := newMetrics(t)
	watch(t, m, telemetry.Sources{Regions: func() map[string]nf.RegionState { return map[string]nf.RegionState{"r0": {}} }})
	done := make(chan error, 4)
	for range 2 {
		go func() {
			for i := range 200 {
				m.RegionRequest(fmt.Sprintf("r%d", i%5), "get", 200, "tcp", time.Millisecond)
			}
			done <- nil
		}()
		go func() { done <- scrape(registry, 50) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func scrape(registry *prometheus.Registry, times int) error {
	for range times {
		if _, err := registry.Gather(); err != nil {
			return err
		}
	}
	return nil
}
