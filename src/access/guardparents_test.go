package access_test

import (
	"context"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/access/accesstest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// moves is a keeper of parents that moves everything.
type moves struct{ done int }

func (m *moves) Reparent(_ context.Context, id, _ string) (nf.Region, error) {
	m.done++
	return nf.Region{ID: id}, nil
}

// TestGuardedParents lets every identity change the parent of a region: it must be able to
// write both regions.
func TestGuardedParents(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	east, west := nf.Scope{Region: accesstest.East}, nf.Scope{Region: accesstest.West}
	tried := map[nf.Kind]int{}
	for _, who := range accesstest.People() {
		want := nf.Internal // allowed
		switch may := func(p nf.Permission, s nf.Scope) bool { return accesstest.May(who, p, s) }; {
		case who == accesstest.Anonymous:
			want = nf.Unauthenticated
		case !may(nf.ReadRegion, east):
			want = nf.NotFound
		case !may(nf.WriteRegion, east):
			want = nf.Forbidden
		case !may(nf.ReadRegion, west):
			want = nf.NotFound
		case !may(nf.WriteRegion, west):
			want = nf.Forbidden
		}
		keeper := &moves{}
		_, err := access.NewParents(h.Guarded, keeper).Reparent(h.as(t, who), accesstest.East, accesstest.West)
		if (err == nil) != (want == nf.Internal) || err != nil && nf.KindOf(err) != want || (keeper.done > 0) != (err == nil) {
			t.Errorf("%s: %v, want %s", who, err, want)
		}
		tried[want]++
	}
	if len(tried) < 4 {
		t.Errorf("only the outcomes %v were tried", tried)
	}
}
