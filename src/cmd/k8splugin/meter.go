package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// meter is the service's metrics that are not about HTTP.
type meter struct {
	registry   *prometheus.Registry
	operations *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
}

func newMeter() *meter {
	m := &meter{
		registry: prometheus.NewRegistry(),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "k8splugin_operations_total", Help: "Operations that have ended, by verb and final state.",
		}, []string{"verb", "state"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "k8splugin_operation_seconds", Help: "Time from an operation's acceptance to its end.",
			Buckets: prometheus.ExponentialBuckets(0.05, 2, 15),
		}, []string{"verb"}),
	}
	m.registry.MustRegister(m.operations, m.seconds,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *meter) finished(op nf.Operation) {
	m.operations.WithLabelValues(string(op.Verb), string(op.State)).Inc()
	m.seconds.WithLabelValues(string(op.Verb)).Observe(op.Finished.Sub(op.Accepted).Seconds())
}
