package catalog_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestWithdraw marks packages of a design that SDC has deleted, and fetches one again.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	f, ctx := newFixture(t), t.Context()
	upload := func(id, design string) {
		t.Helper()
		if _, _, err := f.Upload(ctx, nf.Package{ID: id, Design: design}, bytes.NewReader(archive("one"))); err != nil {
			t.Fatal(err)
		}
	}
	designs := func(reason string, want ...string) {
		t.Helper()
		got, err := f.Designs(ctx)
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(got))); diff != "" || err != nil {
			t.Errorf("%s (-want +got): %s, %v", reason, diff, err)
		}
	}
	for id, design := range map[string]string{"a": "s1", "b": "s1", "c": "s2", "d": ""} {
		upload(id, design)
	}
	designs("each design once", "s1", "s2")
	for _, want := range []int{2, 0} {
		if n, err := f.Withdraw(ctx, "s1"); n != want || err != nil {
			t.Errorf("%d packages are marked (%v), want %d", n, err, want)
		}
	}
	designs("the marked ones are done", "s2")
	for id, want := range map[string]bool{"a": true, "b": true, "c": false, "d": false} {
		if p, err := f.Package(ctx, id); err != nil || p.Withdrawn.IsZero() == want || p.State() != nf.PackageOnboarded {
			t.Errorf("package %s: %+v, %v", id, p, err)
		}
	}
	upload("a", "s1")
	designs("one that is fetched again is no longer marked", "s1", "s2")
}
