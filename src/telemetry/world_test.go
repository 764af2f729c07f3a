package telemetry_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/telemetry"
	"github.com/multicloud-k8s/k8splugin/src/telemetry/telemetrytest"
)

// named returns the exported spans by name, of which no two have the same.
func named(t *testing.T, c *telemetrytest.Collector) map[string]*telemetrytest.Span {
	t.Helper()
	out := map[string]*telemetrytest.Span{}
	for _, s := range c.Spans(t) {
		if out[s.GetName()] != nil {
			t.Fatalf("two spans are called %q", s.GetName())
		}
		out[s.GetName()] = s
	}
	return out
}

// traceTo returns tracing to a collector.
func traceTo(t *testing.T, c *telemetrytest.Collector) *telemetry.Tracing {
	t.Helper()
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Config{Endpoint: c.URL, Sample: 1, Version: "v1.2.3", Instance: "replica-a"})
	if err != nil {
		t.Fatal(err)
	}
	return tracing
}

// flush sends what there is. Nothing can be traced after that.
func flush(t *testing.T, tracing *telemetry.Tracing) {
	t.Helper()
	if err := tracing.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}
