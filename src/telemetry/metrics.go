package telemetry

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Metrics are the service's measurements that are not about HTTP. Its methods
// are told what happened; Watch adds what is so at the moment. It is safe for
// concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	operations *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	leases     prometheus.Counter
	replicas   prometheus.Counter
	takeovers  prometheus.Counter
	requests   *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	store      *prometheus.HistogramVec
	audit      prometheus.Counter
	letters    *prometheus.CounterVec

	regions *regionSeries
}

// NewMetrics returns metrics that the registry shows, with those of the process
// and of Go's runtime. It fails when the registry has any of them already.
func NewMetrics(registry *prometheus.Registry, version string) (*Metrics, error) {
	if registry == nil {
		return nil, errors.New("cannot make metrics: a registry is required")
	}
	m := &Metrics{registry: registry}
	m.makeOperations()
	m.makeParts()
	m.regions = newRegionSeries(m.operations, m.requests, m.failures)
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "k8splugin_build_info", Help: "Always 1, with the version of the service and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	}, func() float64 { return 1 })
	for _, c := range []prometheus.Collector{
		m.operations, m.duration, m.leases, m.replicas, m.takeovers, m.requests, m.failures, m.store, m.audit, m.letters, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register the metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) makeOperations() {
	m.operations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_operations_total", Help: "Operations that have ended, by verb, final state and region.",
	}, []string{"verb", "state", "region"})
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "k8splugin_operation_duration_seconds", Help: "Time from an operation's acceptance to its end, by verb and final state.",
		// From a handful of ConfigMaps to a region that was away for a day.
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400},
	}, []string{"verb", "state"})
	m.leases = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8splugin_lease_losses_total", Help: "Times that this replica lost its own lease, and its operations with it.",
	})
	m.replicas = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8splugin_replicas_lost_total", Help: "Other replicas whose lease this one ended because it had stood still.",
	})
	m.takeovers = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8splugin_takeovers_total", Help: "Operations that this replica took up where another one, or a former process, had left them.",
	})
}

func (m *Metrics) makeParts() {
	m.requests = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "k8splugin_region_request_duration_seconds", Help: "Time of a request to a region's API server, by HTTP method or watch, and by class of status: none when there was no answer.",
		Buckets: []float64{.01, .05, .1, .25, .5, 1, 5, 30}, // few: they are multiplied by the regions
	}, []string{"region", "verb", "code"})
	m.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_region_request_failures_total", Help: "Requests to a region's API server that failed because of the region, by reason; breaker for those that were not sent.",
	}, []string{"region", "reason"})
	m.store = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "k8splugin_store_request_duration_seconds", Help: "Time of a request to the store, by method and outcome: ok, or the kind of the error.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"method", "outcome"})
	m.audit = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8splugin_audit_failures_total", Help: "Entries of the audit log that could not be written.",
	})
	m.letters = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_notifications_total", Help: "Notifications that were posted to a subscriber, by outcome: delivered, deferred (posted again later), or given_up (a dead letter now).",
	}, []string{"outcome"})
}

// Finished counts an operation that has reached its final state.
func (m *Metrics) Finished(op nf.Operation) {
	m.operations.WithLabelValues(string(op.Verb), string(op.State), op.Region).Inc()
	m.regions.touch(op.Region)
	m.duration.WithLabelValues(string(op.Verb), string(op.State)).Observe(op.Finished.Sub(op.Accepted).Seconds())
}

// LeaseEnded counts a lease that ended because it had stood still: this
// replica's own, or another's.
func (m *Metrics) LeaseEnded(own bool) {
	if own {
		m.leases.Inc()
		return
	}
	m.replicas.Inc()
}

// Resumed counts an operation that another replica, or a former process, had
// begun.
func (m *Metrics) Resumed(nf.Operation) { m.takeovers.Inc() }

// RegionRequest counts a request to a region's API server. Verb is the HTTP
// method, or "watch"; code the status, 0 when there was no answer; reason is
// empty, or says why the answer is not good: "tcp", "timeout", "unauthorized".
// A request that was not sent, for reason "breaker" or "replaced", took no time,
// and one that was "cancelled" says nothing of the region.
func (m *Metrics) RegionRequest(region, verb string, code int, reason string, took time.Duration) {
	sent := reason != "breaker" && reason != "replaced"
	if sent && reason != "cancelled" {
		m.requests.WithLabelValues(region, known(strings.ToLower(verb), requestVerbs[:]), codeClass(code)).Observe(took.Seconds())
	}
	if reason != "" && reason != "replaced" && reason != "cancelled" {
		m.failures.WithLabelValues(region, known(reason, failureReasons[:])).Inc()
	}
	m.regions.touch(region)
}

// StoreRequest counts a request to the store. Method and outcome are words of
// the code, not of a client: "get", "put"; "ok" or the name of an nf.Kind.
func (m *Metrics) StoreRequest(method, outcome string, took time.Duration) {
	m.store.WithLabelValues(method, outcome).Observe(took.Seconds())
}

// AuditFailed counts an entry of the audit log that could not be written.
func (m *Metrics) AuditFailed() { m.audit.Inc() }

// Notified counts a notification that was posted. Outcome is a word of the code.
func (m *Metrics) Notified(outcome string) { m.letters.WithLabelValues(outcome).Inc() }

// The words that label values are taken from; any other is "other".
var (
	requestVerbs   = [...]string{"get", "post", "put", "patch", "delete", "watch"}
	failureReasons = [...]string{"tcp", "dns", "tls", "timeout", "unauthorized", "unavailable", "breaker"}
)

func known(word string, words []string) string {
	for _, w := range words {
		if w == word {
			return w
		}
	}
	return "other"
}

// codeClass returns "2xx" for 204, and "none" for what is no status.
func codeClass(code int) string {
	if code < 100 || code > 599 {
		return "none"
	}
	return strconv.Itoa(code/100) + "xx"
}
