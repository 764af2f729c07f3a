package sdc_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

func TestFindChart(t *testing.T) {
	t.Parallel()
	s, c, two := start(t)
	one, err := s.Put(simulator.Service{Name: "Nat", Resources: []simulator.Resource{
		{Instance: "nat 0", Artifacts: []simulator.Artifact{{Name: "nat.tgz", Type: sdc.TypeCloud, Content: []byte("x")}, {Name: "base.env", Type: "HEAT_ENV"}}},
		{Instance: "nat 1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		ref    sdc.ChartRef
		want   string
		kind   nf.Kind
	}{
		"Only one":   {"a service may have one chart", sdc.ChartRef{Service: one.UUID}, "nat.tgz", 0},
		"Instance":   {"an instance may have one", sdc.ChartRef{Service: one.UUID, Instance: "nat 0"}, "nat.tgz", 0},
		"Empty":      {"an instance may have none", sdc.ChartRef{Service: one.UUID, Instance: "nat 1"}, "", nf.NotFound},
		"No such":    {"an instance may not exist", sdc.ChartRef{Service: one.UUID, Instance: "x"}, "", nf.NotFound},
		"Several":    {"two charts are ambiguous", sdc.ChartRef{Service: two.UUID}, "", nf.Invalid},
		"Named":      {"a name selects one", sdc.ChartRef{Service: two.UUID, Artifact: "raw.tgz"}, "raw.tgz", 0},
		"No chart":   {"another artifact is not a chart", sdc.ChartRef{Service: one.UUID, Artifact: "base.env"}, "", nf.NotFound},
		"Resource":   {"a resource has artifacts, too", sdc.ChartRef{Resource: one.Resources[0].UUID}, "nat.tgz", 0},
		"No service": {"a service may not exist", sdc.ChartRef{Service: "x"}, "", nf.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.Chart(t.Context(), tc.ref)
			if got.Name != tc.want || nf.KindOf(err) != tc.kind || (err == nil) != (tc.want != "") {
				t.Errorf("%s: got %q, %v", tc.reason, got.Name, err)
			}
			if err == nil {
				download(t, c, got)
			}
		})
	}
}
