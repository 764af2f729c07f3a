package nf_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestIdentityInContext(t *testing.T) {
	t.Parallel()
	if id, ok := nf.IdentityOf(t.Context()); ok {
		t.Errorf("a context of nobody acts for %s", id)
	}
	ann := nf.Identity{Kind: "user", Name: "ann"}
	if id, ok := nf.IdentityOf(nf.WithIdentity(t.Context(), ann)); !ok || id.String() != "user:ann" {
		t.Errorf("the context acts for %s, %t", id, ok)
	}
}

func TestTrail(t *testing.T) {
	t.Parallel()
	ctx, trail := nf.WithTrail(t.Context())
	left := nf.TrailOf(ctx)
	left.Ask(nf.ReadRegion, nf.Scope{Region: "east"}, "east")
	left.Hide()
	left.Ask(nf.ChangeInstance, nf.Scope{Project: "a", Region: "east"}, "east", "", "vnf")
	left.Begin("op")
	e := nf.AuditEntry{Subjects: []string{"path", "vnf"}}
	trail.Tell(&e)
	if e.Permission != nf.ChangeInstance || e.Project != "a" || e.Region != "east" || e.Operation != "op" || !slices.Equal(e.Subjects, []string{"path", "vnf", "east"}) || !trail.Hidden() {
		t.Errorf("the trail tells %+v, hidden %t", e, trail.Hidden())
	}
	nobodys := nf.TrailOf(t.Context())
	nobodys.Ask(nf.ReadRegion, nf.Scope{})
	nobodys.Tell(&e)
	if nobodys.Hidden() || e.Permission != nf.ChangeInstance {
		t.Errorf("a trail that nobody keeps tells %+v", e)
	}
}

// TestPlaces checks that places have the order of time, in whatever zone, and
// are all different for the entries of one request.
func TestPlaces(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 4, 23, 59, 59, 999, time.UTC)
	entries := []nf.AuditEntry{
		{ID: "z", Time: at.Add(-time.Hour)}, {ID: "y", Time: at}, {ID: "a", Time: at.Add(time.Nanosecond).In(time.FixedZone("x", -7200))}, {ID: "b", Time: at.Add(time.Second)},
	}
	if !slices.IsSortedFunc(entries, func(a, b nf.AuditEntry) int { return strings.Compare(a.Place(), b.Place()) }) {
		t.Errorf("the places are %s, %s, %s, %s", entries[0].Place(), entries[1].Place(), entries[2].Place(), entries[3].Place())
	}
	if (nf.AuditEntry{ID: "x", Phase: nf.AuditIntent}).Place() == (nf.AuditEntry{ID: "x", Phase: nf.AuditOutcome}).Place() {
		t.Error("an intent and its outcome have one place")
	}
}

func TestAuditFilter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)
	e := nf.AuditEntry{Time: at, Kind: "user", Identity: "ann", Project: "a", Region: "east"}
	for name, c := range map[string]struct {
		reason string
		filter nf.AuditFilter
		want   bool
	}{
		"All":      {"nothing is asked for", nf.AuditFilter{}, true},
		"Same":     {"everything is so", nf.AuditFilter{From: at, To: at.Add(1), Kind: "user", Identity: "ann", Project: "a", Region: "east"}, true},
		"Kind":     {"a kind is one", nf.AuditFilter{Kind: "token"}, false},
		"Identity": {"a name is one", nf.AuditFilter{Identity: "bob"}, false},
		"Project":  {"a project is one", nf.AuditFilter{Project: "b"}, false},
		"Region":   {"a region is one", nf.AuditFilter{Region: "west"}, false},
		"Before":   {"it was before", nf.AuditFilter{From: at.Add(1)}, false},
		"After":    {"the end is not in it", nf.AuditFilter{To: at}, false},
	} {
		if got := c.filter.Matches(e); got != c.want {
			t.Errorf("%s: %s: %t", name, c.reason, got)
		}
	}
}
