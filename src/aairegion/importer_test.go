package aairegion_test

import (
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aairegion"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	simulator "github.com/multicloud-k8s/k8splugin/src/simulator/aai"
)

const (
	firstToken  = "first-" + secret
	secondToken = "second-" + secret
)

// TestOnDemand checks which requests import a region.
func TestOnDemand(t *testing.T) {
	inWorld(t, func(w *world) {
		w.region("k8s", "r1", firstToken)
		w.region("a", "twice", firstToken)
		w.region("b", "twice", secondToken)
		w.as("PUT", regionPath+"openstack/vm", `{"cloud-type":"openstack"}`)
		i := w.importer(nil)
		cases := []struct {
			reason, owner, id string
			kind              nf.Kind
			token             string
			requests          int
		}{
			{"a region of any owner", "", "r1", 0, firstToken, 4},
			{"it is registered now", "other", "r1", 0, firstToken, 0},
			{"two owners", "", "twice", nf.Conflict, "", 1},
			{"one of them", "b", "twice", 0, secondToken, 3},
			{"no region", "", "none", nf.NotFound, "", 1},
			{"nor a moment later", "", "none", nf.NotFound, "", 0},
			{"another cloud", "openstack", "vm", nf.NotFound, "", 2},
			{"no id", "", "../x", nf.NotFound, "", 0},
			{"no owner", "a/b", "x", nf.NotFound, "", 0},
		}
		for _, tc := range cases {
			w.simulator.Journal()
			got, err := i.Find(w.Context(), tc.owner, tc.id)
			if err == nil && (tc.token == "" || string(got.Access.Token) != tc.token || got.Origin != nf.OriginAAI || got.AAI.Version == "") {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if err != nil && nf.KindOf(err) != tc.kind || err == nil && tc.token == "" {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if n := len(w.simulator.Journal()); n != tc.requests {
				t.Errorf("%s: %d requests to A&AI, want %d", tc.reason, n, tc.requests)
			}
		}
		w.simulator.Script(simulator.Fault{Status: 503, Times: -1})
		if _, err := i.Find(w.Context(), "", "later"); nf.KindOf(err) != nf.Unreachable {
			t.Errorf("A&AI does not respond: %v", err)
		}
		if got := w.took(); got != "[imported imported]" {
			t.Errorf("results %s", got)
		}
	})
}

// TestUploadWins checks that A&AI does not change a region that a request has registered,
// or given another access.
func TestUploadWins(t *testing.T) {
	inWorld(t, func(w *world) {
		w.region("k8s", "r1", firstToken)
		w.region("k8s", "r2", firstToken)
		i := w.importer(nil)
		if _, err := w.regions.Enlist(w.Context(), nf.Region{ID: "r1", Owner: "k8s", Access: nf.Access{Token: nf.Secret("uploaded")}}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, id := range []string{"r1", "r2"} {
				if _, err := i.Import(w.Context(), "k8s", id); err != nil {
					t.Fatal(err)
				}
			}
			w.wantToken("the upload wins", "r1", "uploaded")
		}
		w.wantToken("the other region is imported", "r2", firstToken)
		if _, err := i.Import(w.Context(), "other", "r2"); nf.KindOf(err) != nf.Conflict {
			t.Errorf("a region of another owner: %v", err)
		}
		if _, err := w.regions.UpdateRegion(w.Context(), "r2", func(g *nf.Region) error {
			g.Access, g.AAI = nf.Access{Token: nf.Secret("patched")}, nil
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		w.rotate("r2", secondToken)
		end := w.run(i)
		defer end()
		w.passes(time.Hour)
		i.Rejected("r2", nf.Access{})
		w.passes(time.Second)
		w.wantToken("the region is local now", "r2", "patched")
	})
}

// TestFollow checks that an imported region follows A&AI.
func TestFollow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.region("k8s", "r1", firstToken)
		i := w.importer(nil)
		if _, err := i.Find(w.Context(), "", "r1"); err != nil {
			t.Fatal(err)
		}
		end := w.run(i)
		defer end()
		w.passes(time.Hour)
		if w.regions.edits != 0 {
			t.Errorf("%d updates of a region that has not changed", w.regions.edits)
		}
		if n := len(w.simulator.Journal()); n < 12 || n > 18 {
			t.Errorf("%d requests in an hour, want 2 in each 10 minutes", n)
		}
		w.rotate("r1", secondToken)
		w.passes(11 * time.Minute)
		w.wantToken("a rotation is noticed", "r1", secondToken)

		w.regions.away.Store(true)
		w.rotate("r1", firstToken)
		w.passes(11 * time.Minute)
		w.wantToken("credentials that do not work are not taken", "r1", secondToken)
		if got := w.get("r1").AAI.Reason; !strings.Contains(got, "does not respond, or does not accept") {
			t.Errorf("the reason is %q", got)
		}
		w.regions.away.Store(false)
		w.passes(11 * time.Minute)
		w.wantToken("until they do", "r1", firstToken)
		if got := w.get("r1").AAI.Reason; got != "" {
			t.Errorf("the reason stays: %q", got)
		}

		w.rotate("r1", "pass")
		w.passes(11 * time.Minute)
		w.wantToken("the region keeps its access", "r1", firstToken)
		if got := w.get("r1").AAI.Reason; !strings.Contains(got, "no basic authentication") {
			t.Errorf("the reason is %q", got)
		}
		w.remove("r1")
		w.passes(11 * time.Minute)
		if w.get("r1").AAI.Vanished.IsZero() {
			t.Error("a region that A&AI no longer has is not marked")
		}
		w.region("k8s", "r1", secondToken)
		w.passes(11 * time.Minute)
		w.wantToken("a region that is back is followed again", "r1", secondToken)
		if !w.get("r1").AAI.Vanished.IsZero() {
			t.Error("the mark stays")
		}
		if got := w.took(); got != "[imported updated failed updated without_access vanished updated]" {
			t.Errorf("results %s", got)
		}
	})
}

// TestRejected checks that rejected credentials are read again: once in a minute.
func TestRejected(t *testing.T) {
	inWorld(t, func(w *world) {
		w.region("k8s", "r1", firstToken)
		i := w.importer(func(c *aairegion.Config) { c.Period = 24 * time.Hour })
		if _, err := i.Find(w.Context(), "", "r1"); err != nil {
			t.Fatal(err)
		}
		end := w.run(i)
		defer end()
		w.passes(time.Minute)
		w.rotate("r1", secondToken)
		i.Rejected("r1", nf.Access{})
		i.Rejected("unknown", nf.Access{})
		w.passes(time.Second)
		w.wantToken("the credentials are read at once", "r1", secondToken)
		w.simulator.Journal()
		for range 30 {
			i.Rejected("r1", nf.Access{})
			w.passes(time.Second)
		}
		if n := len(w.simulator.Journal()); n != 0 {
			t.Errorf("%d requests within a minute", n)
		}
		w.passes(time.Minute)
		i.Rejected("r1", nf.Access{})
		w.passes(time.Second)
		if n := len(w.simulator.Journal()); n != 2 {
			t.Errorf("%d requests after a minute, want 2", n)
		}
	})
}

// TestWithoutAccess checks that a region with placeholders is known, and gets an access
// later.
func TestWithoutAccess(t *testing.T) {
	inWorld(t, func(w *world) {
		w.region("k8s", "r1", "pass")
		i := w.importer(func(c *aairegion.Config) { c.All = true })
		end := w.run(i)
		defer end()
		w.passes(time.Minute)
		got := w.get("r1")
		if !strings.Contains(got.NoAccess(), "esr-system-info 1: service-url, password") || strings.Contains(got.NoAccess(), "pass\"") {
			t.Errorf("the reason is %q", got.NoAccess())
		}
		w.rotate("r1", firstToken)
		if _, err := i.Import(w.Context(), "k8s", "r1"); err != nil {
			t.Fatal(err)
		}
		w.wantToken("the registry call reads it at once", "r1", firstToken)
		if got := w.took(); got != "[without_access updated]" {
			t.Errorf("results %s", got)
		}
	})
}

// TestPollAll checks that all clusters are imported, by one of several replicas.
func TestPollAll(t *testing.T) {
	inWorld(t, func(w *world) {
		w.region("k8s", "r1", firstToken)
		w.region("a", "twice", firstToken)
		w.region("b", "twice", firstToken)
		w.as("PUT", regionPath+"openstack/vm", `{"cloud-type":"openstack"}`)
		for range 3 {
			end := w.run(w.importer(func(c *aairegion.Config) { c.All = true }))
			defer end()
		}
		w.passes(9 * time.Minute)
		if len(w.regions.known) != 1 || w.get("r1").AAI == nil {
			t.Errorf("the regions are %v", w.regions.known)
		}
		if n := len(w.simulator.Journal()); n != 4 {
			t.Errorf("%d requests of three replicas, want 4", n)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := aairegion.New(aairegion.Config{}); err == nil {
		t.Error("an importer without an inventory is accepted")
	}
	if got := len(aairegion.Results()); got != 5 {
		t.Errorf("%d results", got)
	}
}

// TestTenant checks which tenant an imported region gets.
func TestTenant(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		tenants []string
		creates bool
		want    string
	}{
		{"no tenant", nil, false, ""},
		{"the only tenant", []string{"t1"}, false, "t1"},
		{"the service cannot choose", []string{"t1", "t2"}, false, ""},
		{"a new tenant", nil, true, "default"},
		{"no new tenant, if there is one", []string{"t1"}, true, "t1"},
		{"no new tenant, if there are several", []string{"t1", "t2"}, true, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.region("k8s", "r1", firstToken)
				for _, tenant := range tc.tenants {
					w.as("PUT", regionPath+"k8s/r1/tenants/tenant/"+tenant, `{"tenant-name":"x"}`)
				}
				got, err := w.importer(func(cfg *aairegion.Config) { cfg.NewTenants = tc.creates }).Find(w.Context(), "k8s", "r1")
				if err != nil || got.AAITenant != tc.want {
					t.Errorf("the tenant is %q, %v; want %q", got.AAITenant, err, tc.want)
				}
			})
		})
	}
}
