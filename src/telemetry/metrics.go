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

// Metrics are the service's metrics except those of HTTP. Its methods count
// events; Watch adds gauges of the current state. It is safe for concurrent
// use.
type Metrics struct {
	registry *prometheus.Registry

	operations    *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	leases        prometheus.Counter
	replicas      prometheus.Counter
	takeovers     prometheus.Counter
	requests      *prometheus.HistogramVec
	sent          *prometheus.CounterVec
	seconds       *prometheus.CounterVec
	failures      *prometheus.CounterVec
	store         *prometheus.HistogramVec
	audit         prometheus.Counter
	notifications *prometheus.CounterVec
	imports       *prometheus.CounterVec

	regions *regionSeries
}

// NewMetrics registers the metrics, including those of the process and of the
// Go runtime. It returns an error if the registry already has one of them.
func NewMetrics(registry *prometheus.Registry, version string) (*Metrics, error) {
	if registry == nil {
		return nil, errors.New("cannot create metrics: a registry is required")
	}
	m := &Metrics{registry: registry}
	m.makeOperations()
	m.makeParts()
	m.regions = newRegionSeries(m.operations, m.sent, m.seconds, m.failures)
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "k8splugin_build_info", Help: "Always 1; the labels are the versions of the service and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	}, func() float64 { return 1 })
	for _, c := range []prometheus.Collector{
		m.operations, m.duration, m.leases, m.replicas, m.takeovers, m.requests, m.sent, m.seconds, m.failures, m.store, m.audit, m.notifications, m.imports, build,
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
		// From a few ConfigMaps to a region that was unreachable for a day.
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400},
	}, []string{"verb", "state"})
	m.leases = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8splugin_lease_losses_total", Help: "Times that this replica lost its own lease, and with it its operations.",
	})
	m.replicas = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8splugin_replicas_lost_total", Help: "Other replicas whose expired lease this replica ended.",
	})
	m.takeovers = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8splugin_takeovers_total", Help: "Operations that this replica took over from another replica or resumed after an earlier process.",
	})
}

func (m *Metrics) makeParts() {
	m.requests = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "k8splugin_region_request_duration_seconds", Help: "Time of a request to a region's API server, by HTTP method or watch, and by status class: none if there was no response.",
		Buckets: []float64{.01, .05, .1, .25, .5, 1, 5, 30},
	}, []string{"verb", "code"}) // without region: a thousand regions would make 100,000 series and more
	m.sent = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_region_requests_total", Help: "Requests to a region's API server, including failed ones; without those that were not sent.",
	}, []string{"region"})
	m.seconds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_region_request_seconds_total", Help: "Total time of the requests to a region's API server, each until the response was read or the watch had started.",
	}, []string{"region"})
	m.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_region_request_failures_total", Help: "Requests to a region's API server that failed because of the region, by reason; breaker for requests that were not sent.",
	}, []string{"region", "reason"})
	m.store = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "k8splugin_store_request_duration_seconds", Help: "Time of a request to the store, by method and outcome: ok, or the kind of the error.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"method", "outcome"})
	m.audit = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8splugin_audit_failures_total", Help: "Audit log entries that could not be written.",
	})
	m.imports = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_aai_region_imports_total", Help: "Comparisons of cloud regions with A&AI that changed a region or failed, by result: imported, updated, without_access (A&AI has no credentials that can be used), vanished (A&AI no longer has the region), or failed.",
	}, []string{"result"})
	m.notifications = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_notifications_total", Help: "Notifications that were posted to a subscriber, and kubeconfigs that were handed over, by outcome: delivered, retried, or abandoned (now a dead letter).",
	}, []string{"outcome"})
	for _, outcome := range []string{"delivered", "retried", "abandoned"} {
		m.notifications.WithLabelValues(outcome) // an alert does not see the increase of a counter that begins at 1
	}
}

// Finished counts an operation that has reached its final state.
func (m *Metrics) Finished(op nf.Operation) {
	verb, region := string(op.QualifiedVerb()), regionOf(op)
	m.operations.WithLabelValues(verb, string(op.State), region).Inc()
	m.regions.touch(region)
	m.duration.WithLabelValues(verb, string(op.State)).Observe(op.Finished.Sub(op.Accepted).Seconds())
}

// regionOf returns the region for an operation's series. A site's operation has
// none: a region that failed to build was never registered, so its series would
// be deleted at once.
func regionOf(op nf.Operation) string {
	if op.Subject.Kind == nf.SiteSubject {
		return ""
	}
	return op.Region
}

// LeaseEnded counts an expired lease: this replica's own, or another's.
func (m *Metrics) LeaseEnded(own bool) {
	if own {
		m.leases.Inc()
		return
	}
	m.replicas.Inc()
}

// Resumed counts an operation that another replica, or an earlier process, had
// started.
func (m *Metrics) Resumed(nf.Operation) { m.takeovers.Inc() }

// RegionRequest counts a request to a region's API server. Verb is the HTTP
// method or "watch". Code is the status, or 0 if there was no response. Reason
// is empty for a good response, otherwise it is the kind of failure: "tcp",
// "timeout", "unauthorized". Requests with the reasons "breaker" and "replaced"
// were not sent, so their time is not counted. Those with the reason
// "cancelled" are not counted, because they say nothing about the region.
func (m *Metrics) RegionRequest(region, verb string, code int, reason string, took time.Duration) {
	sent := reason != nf.ReasonBreaker && reason != nf.ReasonReplaced
	if sent && reason != "cancelled" {
		m.requests.WithLabelValues(known(strings.ToLower(verb), requestVerbs[:]), codeClass(code)).Observe(took.Seconds())
		m.sent.WithLabelValues(region).Inc()
		m.seconds.WithLabelValues(region).Add(max(0, took.Seconds())) // a clock can be set back
	}
	if reason != "" && reason != nf.ReasonReplaced && reason != "cancelled" {
		m.failures.WithLabelValues(region, known(reason, failureReasons[:])).Inc()
	}
	m.regions.touch(region)
}

// StoreRequest counts a request to the store. Method and outcome must be
// constants and not come from a client: "get", "put"; "ok" or the name of an
// nf.Kind.
func (m *Metrics) StoreRequest(method, outcome string, took time.Duration) {
	m.store.WithLabelValues(method, outcome).Observe(took.Seconds())
}

// AuditFailed counts an entry of the audit log that could not be written.
func (m *Metrics) AuditFailed() { m.audit.Inc() }

// Notified counts a posted notification, or a kubeconfig that was handed over. Outcome must be a constant.
func (m *Metrics) Notified(outcome string) { m.notifications.WithLabelValues(outcome).Inc() }

// RegionImported counts a comparison of a cloud region with A&AI. Result must be a constant.
func (m *Metrics) RegionImported(result string) { m.imports.WithLabelValues(result).Inc() }

// The allowed label values; any other is "other".
var (
	requestVerbs   = [...]string{"get", "post", "put", "patch", "delete", "watch"}
	failureReasons = [...]string{nf.ReasonTCP, nf.ReasonDNS, nf.ReasonTLS, nf.ReasonTimeout, nf.ReasonUnauthorized, nf.ReasonUnavailable, nf.ReasonBreaker}
)

func known(word string, words []string) string {
	for _, w := range words {
		if w == word {
			return w
		}
	}
	return "other"
}

// codeClass returns "2xx" for 204, and "none" for an invalid status.
func codeClass(code int) string {
	if code < 100 || code > 599 {
		return "none"
	}
	return strconv.Itoa(code/100) + "xx"
}
