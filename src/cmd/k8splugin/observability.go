package main

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// observability holds the service's log, metrics and traces.
type observability struct {
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *telemetry.Metrics
	tracing  *telemetry.Tracing
}

func (c Config) observability(ctx context.Context, p process) (observability, error) {
	s := observability{log: c.logger(p), registry: prometheus.NewRegistry()}
	var err error
	if s.metrics, err = telemetry.NewMetrics(s.registry, version()); err != nil {
		return s, err
	}
	s.tracing, err = telemetry.NewTracing(ctx, telemetry.Config{
		Endpoint: c.OTLPEndpoint, Insecure: c.OTLPInsecure, Sample: c.OTLPSample, Version: version(), Instance: c.Replica, Logger: s.log,
	})
	return s, err
}

// logger returns the service's log.
func (c Config) logger(p process) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // validated before
	opts := &slog.HandlerOptions{Level: level}
	var out slog.Handler = slog.NewJSONHandler(p.stderr, opts)
	if c.LogFormat == "text" {
		out = slog.NewTextHandler(p.stderr, opts)
	}
	return slog.New(telemetry.Correlated(telemetry.Redacted(out), northbound.RequestID))
}

// pool returns the pool of connections to regions. Their requests are traced
// and counted. Rules judge custom resources, and keep stores renewed credentials. Version is
// that of the regions.
func (s observability) pool(hosts outbound.Hosts, rules *readiness.Rules, keep renewals, rejected func(string, nf.Access), version func() (uint64, bool)) *cluster.Pool {
	return cluster.New(cluster.PoolConfig{
		Hosts: hosts, Readiness: rules, Logger: s.log, Wrap: s.tracing.Wrap, Keep: keep.token, Renewal: keep.certificate, Rejected: rejected, RegionsVersion: version,
		Observe: func(c cluster.Call) {
			code, _ := strconv.Atoi(c.Code) // 0 if there was no response
			s.metrics.RegionRequest(c.Region, c.Verb, code, c.Reason, c.Took)
		},
	})
}

// traceparent continues a request's trace in the operation that it starts.
func (s observability) traceparent(r *http.Request) string { return telemetry.Traceparent(r.Context()) }

// watch registers the metrics that are read from the components on demand.
func (s observability) watch(ctx context.Context, parts *service, d accessConfig, db *secureStore) error {
	sources := telemetry.Sources{
		Operations: parts.workers.Ledger().Running, Queue: parts.workers.Queued, Replicas: parts.workers.Replicas, Instances: parts.health.InstanceCounts,
		Drifts: parts.drift.DriftCounts, Alarms: parts.vnfs.faults.AlarmCounts, Networks: parts.networks.Counts, Volumes: parts.volumes.Counts, Listings: parts.inventory.counts, Regions: parts.pool.States, Sealed: db.sealed, Store: db.db.space, Targets: parts.targets,
		Mesh: meshSource(parts.mesh),
	}
	sources.Index = func() map[string]telemetry.IndexStatus {
		out := map[string]telemetry.IndexStatus{}
		for table, s := range parts.index.Status() {
			out[table] = telemetry.IndexStatus(s)
		}
		return out
	}
	if d.tls != nil {
		sources.Certificate = func() time.Time { return d.tls.Expires(ctx) }
	}
	sources.Broken = func() map[string]int64 {
		broken := map[string]int64{}
		if d.rules != nil {
			broken["rules"] = d.rules.Broken()
		}
		if d.tls != nil {
			broken["certificate"] = d.tls.Broken()
		}
		return broken
	}
	return s.metrics.Watch(sources)
}

// targets returns the number of recent targets of notifications, also of SOL003, and of
// hand-overs, by the state of their circuit breaker.
func (s *service) targets() map[nf.BreakerState]int {
	out := s.notifier.Targets()
	for _, more := range []map[nf.BreakerState]int{s.vnfs.notifier.Targets(), s.handOvers.Targets()} {
		for state, n := range more {
			out[state] += n
		}
	}
	return out
}

// close sends the last spans. Losing them is not a failure of the service.
func (s observability) close(ctx context.Context) {
	if err := s.tracing.Shutdown(context.WithoutCancel(ctx)); err != nil {
		s.log.WarnContext(ctx, "failed to send the last traces", "error", err)
	}
}
