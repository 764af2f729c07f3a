package onap_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

// hiddenRegions are regions of which the caller sees nothing, or sees no user.
type hiddenRegions struct {
	onap.Regions

	hidden, used bool
	removals     int
}

func (v *hiddenRegions) Region(ctx context.Context, id string) (nf.Region, error) {
	if v.hidden {
		return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	}
	return v.Regions.Region(ctx, id)
}

func (v *hiddenRegions) Users(context.Context, nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		if v.hidden {
			yield(nf.Subject{}, nf.E(nf.NotFound, "get", "cloud region", nil))
		}
	}
}

func (v *hiddenRegions) RemoveRegion(ctx context.Context, id string) error {
	const forever = 100
	if v.removals++; v.removals > forever {
		return nf.E(nf.Internal, "remove", "cloud region "+id, nil)
	}
	switch {
	case v.hidden:
		return nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	case v.used:
		return nf.E(nf.Conflict, "remove", "cloud region "+id, nf.Violations{{Message: "is used by VNF instance (one that you may not see)"}})
	}
	return v.Regions.RemoveRegion(ctx, id)
}

// TestRemoveHiddenRegion removes a region that the caller may not see, and one
// that only an instance uses which the caller may not see.
func TestRemoveHiddenRegion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason       string
		hidden, used bool
		status       int
		kept         bool
	}{
		"Hidden": {"a hidden region is answered as one that does not exist, and keeps its connection", true, false, 204, true},
		"User":   {"a hidden instance keeps the region, and nobody waits for it", false, true, 500, true},
		"Free":   {"a region goes with its connection", false, false, 204, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround()
			v := &hiddenRegions{Regions: g, hidden: tc.hidden, used: tc.used}
			site := g.serve(t, func(c *onap.Config) { c.Regions = v })
			site.send(t, "POST /v1/connectivity-info", `{"cloud-region": "east", "cloud-owner": "o", "kubeconfig": "eA=="}`)
			got := site.send(t, "DELETE /v1/connectivity-info/east", "")
			_, err := g.kv.Get(t.Context(), "onap/connections/east")
			if got.status != tc.status || (err == nil) != tc.kept || v.removals > 2 {
				t.Errorf("%s: %d %s after %d tries; the connection: %v", tc.reason, got.status, got.body, v.removals, err)
			}
		})
	}
}

// TestHiddenRecords has a viewer read the secrets of connectivity records, whose fields any
// client names.
func TestHiddenRecords(t *testing.T) {
	t.Parallel()
	g := newGround()
	site := g.serve(t)
	site.send(t, "POST /v1/connectivity-info", `{"cloud-region": "east", "cloud-owner": "o", "kubeconfig": "eA==",
		"other-connectivity-list": {"connectivity-records": [{"api-token": "s3cret", "Password": "s3cret", "url": "https://ovn"}]}}`)
	g.denied[nf.WriteRegion] = true
	const want = `"connectivity-records":[{"Password":"********","api-token":"********","url":"https://ovn"}]`
	if got := site.send(t, "GET /v1/connectivity-info/east", ""); got.status != 200 || !strings.Contains(got.body, want) {
		t.Errorf("a viewer gets %d %s", got.status, got.body)
	}
}

// TestDeniedChangesNothing makes requests that fail for what the caller may not
// do, or may not see, and looks for what they have left.
func TestDeniedChangesNothing(t *testing.T) {
	t.Parallel()
	const elsewhere = `{"rb-name": "fw", "rb-version": "1", "profile-name": "default", "cloud-region": "north"}`
	cases := map[string]struct {
		reason, request, body string
		denied                nf.Permission
		status                int
	}{
		"Test":    {"permission to change an instance is not permission to stop its tests", "DELETE /v1/instance/id1", "", nf.RemoveInstance, 403},
		"Upgrade": {"cleaning up after an instance's moves needs permission to change it", "POST /v1/instance/id1/upgrade", fwRequest, nf.ChangeInstance, 403},
		"Config":  {"so does completing the history of its configurations", "POST " + configs + "/c/delete", "", nf.ChangeInstance, 403},
		"Compose": {"nothing is composed for a region that does not exist", "POST /v1/instance", elsewhere, "", 500},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := configured(t, 1)
			if _, err := w.records.Realias(t.Context(), "id1", func(a *bundle.Alias) error {
				a.Leaving = []string{"gone"}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			w.edit(func(e *engine) { // the history lacks the version that is in force
				in := e.instances["id1"]
				in.Annotations["onap/config/c"] = strings.Replace(in.Annotations["onap/config/c"], `"version":1`, `"version":2`, 1)
				e.instances["id1"] = in
			})
			w.hold = true
			if _, err := w.Test(t.Context(), "id1", nf.TestRequest{}); err != nil {
				t.Fatal(err)
			}
			before, asked := w.stored(t), len(w.asked)
			w.rights[tc.denied] = true
			if got := w.ask(t, tc.request, tc.body); got.status != tc.status {
				t.Fatalf("%s: %d %s", tc.reason, got.status, got.body)
			}
			if after := w.stored(t); after != before || len(w.asked) != asked {
				t.Errorf("%s: the engine was asked for %v; the store was\n%s\nand is\n%s", tc.reason, w.last(), before, after)
			}
		})
	}
}

// stored returns all that the API has stored.
func (w *world) stored(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for e, err := range w.kv.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(e.Key + ": " + string(e.Value) + "\n")
	}
	return out.String()
}

// TestRegionOfInstances removes the region of instances that stay, and of some
// that are leaving.
func TestRegionOfInstances(t *testing.T) {
	t.Parallel()
	g := newGround()
	site := g.serve(t)
	site.send(t, "POST /v1/connectivity-info", `{"cloud-region": "east", "cloud-owner": "o", "kubeconfig": "eA=="}`)
	g.users["east"] = []string{"vnf1", "vnf2"}
	g.leaving["vnf1"] = true
	got := site.send(t, "DELETE /v1/connectivity-info/east", "")
	if got.status != 500 || !strings.Contains(got.body, "is used by VNF instance") {
		t.Errorf("one of them stays: %d %s", got.status, got.body)
	}
	g.leaving["vnf2"] = true
	if got := site.send(t, "DELETE /v1/connectivity-info/east", ""); got.status != 204 || len(g.regions) > 0 {
		t.Errorf("both are leaving: %d %s", got.status, got.body)
	}
}
