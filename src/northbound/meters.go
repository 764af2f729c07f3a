package northbound

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meters are the metrics of the HTTP layer. Labels are path templates and known
// methods, so that clients cannot create new time series.
type meters struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMeters(registry prometheus.Registerer) (*meters, error) {
	m := &meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "k8splugin_http_requests_total", Help: "Requests that were answered.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "k8splugin_http_request_duration_seconds", Help: "Time from a request's header to the end of its response.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2, 10, 60, 600},
		}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "k8splugin_http_requests_in_flight", Help: "Requests that are being processed.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inFlight} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register the metrics: %w", err)
		}
	}
	return m, nil
}

func (m *meters) observe(route, method string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	if !slices.Contains(methods(), method) {
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(route, method).Observe(took.Seconds())
}

// methods lists the methods that a route can have.
func methods() []string {
	return []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}
