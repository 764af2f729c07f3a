package access_test

import (
	"context"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// anySite is a keeper that builds every site.
type anySite struct{ access.SiteKeeper }

func (anySite) Create(context.Context, nf.SiteRequest) (nf.Operation, error) {
	return nf.Operation{}, nil
}

// TestMachinesNeedTheirCloud builds a site whose machines are those of a cloud in
// another region, as every identity: its credential is used.
func TestMachinesNeedTheirCloud(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	sites := access.NewSites(h.Guarded, anySite{})
	allowed, denied := 0, 0
	for _, who := range accesstest.People() {
		for _, cloud := range []string{accesstest.East, accesstest.West} {
			req := nf.SiteRequest{Site: nf.Site{ID: "edge", Region: accesstest.East, Machines: &nf.Machines{Cloud: cloud}}}
			_, err := sites.CreateSite(h.as(t, who), req)
			may := who != accesstest.Anonymous && accesstest.May(who, nf.WriteRegion, nf.Scope{Region: accesstest.East}) &&
				accesstest.May(who, nf.WriteRegion, nf.Scope{Region: cloud})
			if (err == nil) != may {
				t.Errorf("%s builds a site with machines in %s: %v, want that it may: %t", who, cloud, err, may)
			}
			if may {
				allowed++
			} else {
				denied++
			}
		}
	}
	if allowed == 0 || denied == 0 {
		t.Errorf("%d cases are allowed and %d denied, want both", allowed, denied)
	}
}
