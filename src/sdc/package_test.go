package sdc_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/sdc"
)

func TestFindPackage(t *testing.T) {
	t.Parallel()
	s, c, two := start(t)
	one, err := s.Put(simulator.Service{Name: "Nat", Resources: []simulator.Resource{
		{Instance: "nat 0", Artifacts: []simulator.Artifact{{Name: "nat.tgz", Type: sdc.TypeCloud, Content: []byte("x")}, {Name: "base.env", Type: "HEAT_ENV"}}},
		{Instance: "nat 1"},
		{Instance: "csar 0", Artifacts: []simulator.Artifact{
			{Name: "csar.zip", Type: sdc.TypeOnboarded, Content: []byte("z")}, {Name: "etsi.csar", Type: sdc.TypeETSI, Content: []byte("c")},
			{Name: "manifests.zip", Type: sdc.TypeOther, Content: []byte("m")}, {Name: "readme.txt", Type: "GUIDE"},
		}},
		{Instance: "raw 0", Artifacts: []simulator.Artifact{{Name: "raw.zip", Type: sdc.TypeOnboarded, Content: []byte("r")}}},
		{Instance: "other 0", Artifacts: []simulator.Artifact{{Name: "a.zip", Type: sdc.TypeOther, Content: []byte("a")}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		ref    sdc.PackageRef
		want   string
		kind   nf.Kind
	}{
		"Only one":   {"a service may have one chart", sdc.PackageRef{Service: one.UUID}, "nat.tgz", 0},
		"Instance":   {"an instance may have one", sdc.PackageRef{Service: one.UUID, Instance: "nat 0"}, "nat.tgz", 0},
		"Empty":      {"an instance may have none", sdc.PackageRef{Service: one.UUID, Instance: "nat 1"}, "", nf.NotFound},
		"No such":    {"an instance may not exist", sdc.PackageRef{Service: one.UUID, Instance: "x"}, "", nf.NotFound},
		"Several":    {"two charts are ambiguous", sdc.PackageRef{Service: two.UUID}, "", nf.Invalid},
		"Named":      {"a name selects one", sdc.PackageRef{Service: two.UUID, Artifact: "raw.tgz"}, "raw.tgz", 0},
		"No chart":   {"another artifact is not a chart", sdc.PackageRef{Service: one.UUID, Artifact: "base.env"}, "", nf.NotFound},
		"CSAR":       {"without a chart, a package of ETSI is taken", sdc.PackageRef{Service: one.UUID, Instance: "csar 0"}, "etsi.csar", 0},
		"Onboarded":  {"or else what was onboarded", sdc.PackageRef{Service: one.UUID, Instance: "raw 0"}, "raw.zip", 0},
		"CSAR named": {"which can be named", sdc.PackageRef{Service: one.UUID, Artifact: "csar.zip"}, "csar.zip", 0},
		"Manifests":  {"SDC has no type for manifests; an artifact of the type OTHER must be named", sdc.PackageRef{Service: one.UUID, Artifact: "manifests.zip"}, "manifests.zip", 0},
		"Other":      {"because it may be anything", sdc.PackageRef{Service: one.UUID, Instance: "other 0"}, "", nf.NotFound},
		"Resource":   {"a resource has artifacts, too", sdc.PackageRef{Resource: one.Resources[0].UUID}, "nat.tgz", 0},
		"No service": {"a service may not exist", sdc.PackageRef{Service: "x"}, "", nf.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.Package(t.Context(), tc.ref)
			if got.Name != tc.want || nf.KindOf(err) != tc.kind || (err == nil) != (tc.want != "") {
				t.Errorf("%s: got %q, %v", tc.reason, got.Name, err)
			}
			if err == nil {
				download(t, c, got)
			}
		})
	}
}
