package schema_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
)

const recordKey = "meta/schema"

// service is what a program of this release opens a store with.
func service(raw store.KV, keys *seal.Keyring) (schema.Config, *seal.Store) {
	sealed := seal.New(raw, keys)
	return schema.Config{
		Raw: raw, Sealed: sealed, SealedBy: keys.IDs()[0], Clock: clock,
		Migrations: []schema.Migration{{Name: "seal every record", Run: func(ctx context.Context) error { return sealAll(ctx, raw, sealed) }}},
	}, sealed
}

// sealAll is a migration: it seals the records that are not sealed.
func sealAll(ctx context.Context, raw store.KV, sealed *seal.Store) error {
	for e, err := range raw.List(ctx, "", "") {
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.Key, schema.Prefix) {
			continue
		}
		if strings.HasPrefix(string(e.Value), "\xb5") { // it is sealed
			_, err = sealed.Get(ctx, e.Key)
		} else {
			_, err = sealed.Put(ctx, e.Key, e.Value, e.Revision)
		}
		if err != nil && nf.KindOf(err) != nf.Conflict { // a conflict: another replica has sealed it
			return err
		}
	}
	return nil
}

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// former is a store as the former release left it.
func former(t *testing.T) *memory.Store {
	t.Helper()
	raw := memory.New()
	for _, id := range []string{"east", "west"} {
		must(t, store.NewTable[nf.Region](raw, "regions/", "cloud region").Insert(t.Context(), id, nf.Region{ID: id}))
	}
	_, _, err := store.NewBlobs(raw).Put(t.Context(), "csar", strings.NewReader(content), 1<<30)
	must(t, err)
	return raw
}

const formerRecords = 6 // two regions, a blob, and its three chunks

var content = strings.Repeat("0123456789abcdef", 40_000)

// wantFormer reads through the seals what the former release has left.
func wantFormer(t *testing.T, reason string, kv store.KV) {
	t.Helper()
	regions, err := store.NewTable[nf.Region](kv, "regions/", "cloud region").List(t.Context(), "")
	must(t, err)
	if len(regions) != 2 || regions[0].ID != "east" || regions[1].ID != "west" {
		t.Errorf("%s: the regions are %v", reason, regions)
	}
	digest := ""
	for e, err := range kv.List(t.Context(), "blobs/", "") {
		must(t, err)
		digest = strings.TrimPrefix(e.Key, "blobs/")
	}
	got, err := store.NewBlobs(kv).ReadAll(t.Context(), digest)
	must(t, err)
	if string(got) != content {
		t.Errorf("%s: the blob is %d bytes that are not what was stored", reason, len(got))
	}
}

func generate(t *testing.T) *seal.Keyring {
	t.Helper()
	k, err := seal.Generate()
	must(t, err)
	return k
}

func wantRecord(t *testing.T, raw store.KV, want schema.Record) {
	t.Helper()
	got, err := schema.Read(t.Context(), raw)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
}

func dump(t *testing.T, raw store.KV) map[string]string {
	t.Helper()
	out := map[string]string{}
	for e, err := range raw.List(t.Context(), "", "") {
		must(t, err)
		out[e.Key] = string(e.Value)
	}
	return out
}

func put(t *testing.T, raw store.KV, key, value string) {
	t.Helper()
	_, err := raw.Put(t.Context(), key, []byte(value), store.Any)
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, reason string, err error, kind nf.Kind) {
	t.Helper()
	if err == nil || nf.KindOf(err) != kind {
		t.Errorf("%s: the error is %v (%s), want one of kind %s", reason, err, nf.KindOf(err), kind)
	}
}
