package bundle_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestConnectionLife(t *testing.T) {
	t.Parallel()
	f, ctx, east := newFixture(t), t.Context(), nf.Region{ID: "east"}
	want := bundle.Connection{Region: "east", Owner: "acme", Records: []map[string]string{{"connectivity-record-name": "ovn"}}}
	must(t, f.PutConnection(ctx, want))
	got, err := f.Connection(ctx, east)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the connection (-want +got):\n%s", diff)
	}
	for range 2 {
		must(t, f.RemoveConnection(ctx, "east"))
	}
	_, err = f.Connection(ctx, east)
	fails(t, "it is removed", err, nf.NotFound, "east")
}

func TestMaskedConnection(t *testing.T) {
	t.Parallel()
	record := map[string]string{
		"connectivity-record-name": "ovn", "password": "true", "private-key": "x", "Password": "x", "api-token": "x", "clientSecret": "x",
		"token": "", "secret-name": "s", "ssl-initiator": "true",
	}
	given := bundle.Connection{Region: "east", Records: []map[string]string{record, nil}}
	want := bundle.Connection{Region: "east", Records: []map[string]string{{
		"connectivity-record-name": "ovn", "password": nf.Masked, "private-key": nf.Masked, "Password": nf.Masked, "api-token": nf.Masked, "clientSecret": nf.Masked,
		"token": "", "secret-name": "s", "ssl-initiator": "true",
	}, nil}}
	if diff := cmp.Diff(want, given.Masked()); diff != "" {
		t.Errorf("what is shown (-want +got):\n%s", diff)
	}
	if record["api-token"] != "x" {
		t.Errorf("masking changes what is stored: %v", record)
	}
}

// TestFormerConnections registers regions again under the ids of others, whose
// connections were left behind.
func TestFormerConnections(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	at := func(hour int) time.Time { return time.Date(2026, 11, 20, hour, 0, 0, 123, time.UTC) }
	for id, registered := range map[string]time.Time{"same": at(1), "again": at(1), "gone": at(1), "old": {}, "old-gone": {}} {
		must(t, f.PutConnection(ctx, bundle.Connection{Region: id, Registered: registered, Owner: "acme"}))
	}
	regions := map[string]nf.Region{"same": {ID: "same", Created: at(1)}, "again": {ID: "again", Created: at(2)}, "old": {ID: "old", Created: at(2)}}
	cases := map[string]struct {
		reason string
		shown  bool
	}{
		"same":  {"it is the connection of the region", true},
		"again": {"it was the connection of another region", false},
		"old":   {"it was kept before regions were told apart", true},
	}
	for id, tc := range cases {
		if _, err := f.Connection(ctx, regions[id]); (err == nil) != tc.shown {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
	must(t, f.SweepConnections(ctx, func(_ context.Context, id string) (nf.Region, error) {
		r, ok := regions[id]
		if !ok {
			return r, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
		}
		return r, nil
	}))
	if diff := cmp.Diff([]string{"onap/connections/old", "onap/connections/same"}, f.keys(t, "onap/connections/")); diff != "" {
		t.Errorf("the connections that stay (-want +got):\n%s", diff)
	}
}
