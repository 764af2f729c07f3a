package telemetry_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	k8splugin "github.com/multicloud-k8s/k8splugin"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/store/metered"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// newMetrics returns metrics in their own registry.
func newMetrics(t testing.TB) (*telemetry.Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := telemetry.NewMetrics(registry, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return m, registry
}

// busy returns the registry of a service in which everything has happened that
// is measured, and with every value that an alert looks for.
func busy(t testing.TB) *prometheus.Registry {
	t.Helper()
	m, registry := newMetrics(t)
	accepted := time.Now().Add(-time.Hour)
	for _, verb := range []nf.Verb{nf.Instantiate, nf.Upgrade, nf.Rollback, nf.Terminate} {
		for _, state := range []nf.OperationState{nf.Succeeded, nf.OperationFailed, nf.OperationCancelled} {
			m.Finished(nf.Operation{Verb: verb, State: state, Region: "east", Accepted: accepted, Finished: time.Now()})
		}
	}
	for _, own := range []bool{true, false} {
		m.LeaseEnded(own)
	}
	m.Resumed(nf.Operation{})
	for _, verb := range []string{http.MethodPatch, http.MethodGet, "WATCH"} {
		m.RegionRequest("east", verb, http.StatusOK, "", time.Second)
		m.RegionRequest("east", verb, 0, "tcp", time.Second)
	}
	for _, method := range []string{"get", "put", "delete", "list"} {
		for _, outcome := range []string{metered.OK, nf.Unreachable.String(), nf.NotFound.String(), nf.Conflict.String()} {
			m.StoreRequest(method, outcome, time.Millisecond)
		}
	}
	m.RegionImported("imported")
	m.AuditFailed()
	for _, outcome := range []outbox.Outcome{outbox.Delivered, outbox.Deferred, outbox.GivenUp} {
		m.Notified(string(outcome))
	}
	watch(t, m, telemetry.Sources{
		Operations: func() []nf.Operation {
			return []nf.Operation{
				{State: nf.Queued, Region: "east", Accepted: accepted},
				{State: nf.Running, Region: "east", Started: accepted},
				{State: nf.Running, Region: "east", Waiting: &nf.Wait{Since: accepted}},
			}
		},
		Queue:    func() int { return 1 },
		Replicas: func() int { return 2 },
		Networks: func() []nf.SharedCount {
			return []nf.SharedCount{{Region: "east", Driver: "multus", State: nf.SharedFailed, Number: 1}}
		},
		Listings: func() map[nf.ListingState]int {
			return map[nf.ListingState]int{nf.ListingClean: 1, nf.ListingDirty: 1, nf.ListingWaiting: 1, nf.ListingParked: 1}
		},
		Volumes: func() []nf.SharedCount { return []nf.SharedCount{{Region: "east", State: nf.SharedFailed, Number: 1}} },
		Instances: func() []nf.InstanceCount {
			var out []nf.InstanceCount
			for _, h := range nf.HealthStates() {
				out = append(out, nf.InstanceCount{Region: "east", State: nf.Ready, Health: h, Number: 1})
			}
			return out
		},
		Drifts: func() []nf.DriftCount {
			var out []nf.DriftCount
			for _, s := range nf.DriftStates() {
				out = append(out, nf.DriftCount{Region: "east", Mode: nf.DriftWarn, State: s, Number: 1})
			}
			return out
		},
		Alarms: func() []nf.AlarmCount {
			var out []nf.AlarmCount
			for _, s := range []nf.AlarmSeverity{nf.AlarmCritical, nf.AlarmMajor} {
				out = append(out, nf.AlarmCount{Severity: s, Number: 1}, nf.AlarmCount{Severity: s, Acknowledged: true, Number: 1})
			}
			return out
		},
		Regions: func() map[string]nf.RegionState {
			return map[string]nf.RegionState{"east": {
				Condition: nf.RegionExpiring, Since: accepted, Checked: accepted, Credential: nf.Credential{Expires: accepted, Failing: accepted},
			}}
		},
		Certificate: func() time.Time { return accepted },
		Mesh: func() telemetry.MeshCertificate {
			return telemetry.MeshCertificate{Obtained: accepted, Expires: accepted, Failures: 1}
		},
		Sealed: func() map[string]int { return map[string]int{"2026-01": 7} },
		Store: func() telemetry.StoreSpace {
			return telemetry.StoreSpace{Size: 80, InUse: 60, Quota: 100, Compacted: accepted}
		},
		Index: func() map[string]telemetry.IndexStatus {
			return map[string]telemetry.IndexStatus{"instances": {Records: 7, Filled: true}}
		},
		Targets: func() map[nf.BreakerState]int {
			return map[nf.BreakerState]int{nf.BreakerClosed: 2, nf.BreakerHalfOpen: 0, nf.BreakerOpen: 1}
		},
		Broken: func() map[string]int64 { return map[string]int64{"rules": 1, "certificate": 0} },
	})
	serveHTTP(t, registry)
	return registry
}

// serveHTTP adds the metrics of the HTTP shell, and a request to each.
func serveHTTP(t testing.TB, registry *prometheus.Registry) {
	t.Helper()
	handler, err := northbound.New(northbound.Config{Swagger: k8splugin.Swagger, Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
}

func watch(t testing.TB, m *telemetry.Metrics, s telemetry.Sources) {
	t.Helper()
	if err := m.Watch(s); err != nil {
		t.Fatal(err)
	}
}

// families returns the service's own metrics by name.
func families(t testing.TB, registry *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, f := range all {
		if strings.HasPrefix(f.GetName(), "k8splugin_") {
			out[f.GetName()] = f
		}
	}
	return out
}

// series returns the values of the service's own series by name and labels, as
// Prometheus writes them; of a histogram those of _sum and _count.
func series(t testing.TB, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for name, f := range families(t, registry) {
		for _, m := range f.GetMetric() {
			labels := labelsOf(m)
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				out[name+"_sum"+labels] = m.GetHistogram().GetSampleSum()
				out[name+"_count"+labels] = float64(m.GetHistogram().GetSampleCount())
			case dto.MetricType_COUNTER:
				out[name+labels] = m.GetCounter().GetValue()
			default:
				out[name+labels] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func labelsOf(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.GetLabel() {
		pairs = append(pairs, l.GetName()+"="+l.GetValue())
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// moved returns what do has changed: new values of series that were or were not
// there, and NaN-free zeros for those that are gone.
func moved(t testing.TB, registry *prometheus.Registry, do func()) map[string]float64 {
	t.Helper()
	before := series(t, registry)
	do()
	after := series(t, registry)
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
	maps.DeleteFunc(after, func(name string, value float64) bool {
		old, ok := before[name]
		return ok && old == value
	})
	return after
}

// labelNames returns the names of a family's labels, sorted.
func labelNames(f *dto.MetricFamily) []string {
	names := map[string]bool{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			names[l.GetName()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
