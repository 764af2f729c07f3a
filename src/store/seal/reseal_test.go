package seal_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/seal"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestReseal(t *testing.T) {
	raw, first := memory.New(), generate(t)
	for i := range 5 {
		put(t, seal.New(raw, first), fmt.Sprintf("old/%d", i), strconv.Itoa(i))
	}
	put(t, seal.New(raw, first), "replicas/1", "beat")
	must(t, rawPut(t, raw, "meta/schema", []byte("{}")))
	second, err := first.Rotate()
	must(t, err)
	kv := seal.New(raw, second)
	put(t, kv, "new", "value")

	newID, oldID := second.IDs()[0], second.IDs()[1]
	wantStatus(t, kv, seal.Status{Primary: newID, Records: map[string]int{newID: 1, oldID: 6}})
	report, err := kv.Reseal(t.Context(), "replicas/")
	must(t, err)
	if diff := cmp.Diff(seal.Report{Primary: newID, Rewritten: 5, Current: 1, Skipped: 1}, report); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}
	wantStatus(t, kv, seal.Status{Primary: newID, Records: map[string]int{newID: 6, oldID: 1}})
	report, err = kv.Reseal(t.Context())
	must(t, err)
	if diff := cmp.Diff(seal.Report{Primary: newID, Rewritten: 1, Current: 6}, report); diff != "" {
		t.Errorf("the second report (-want +got):\n%s", diff)
	}
	pruned, err := second.Prune()
	must(t, err)
	for i := range 5 {
		if got := get(t, seal.New(raw, pruned), fmt.Sprintf("old/%d", i)); got != strconv.Itoa(i) {
			t.Errorf("record %d is %q without the old key", i, got)
		}
	}
	wantStatus(t, seal.New(raw, first), seal.Status{Primary: oldID, Records: map[string]int{newID: 7}, Missing: []string{newID}})
}

// TestResealDies cuts it at every write: the next one completes it, and no
// record is lost in between.
func TestResealDies(t *testing.T) {
	const records = 4
	for n := 1; n <= records; n++ {
		for _, done := range []bool{false, true} {
			raw, first := memory.New(), generate(t)
			second, err := first.Rotate()
			must(t, err)
			for i := range records {
				put(t, seal.New(raw, first), strconv.Itoa(i), "value")
			}
			crashing := storetest.NewCrashingStore(raw)
			crashing.CrashAt(n, done)
			_, err = seal.New(crashing, second).Reseal(t.Context())
			wantKind(t, "it died", err, nf.Unreachable)
			kv := seal.New(raw, second)
			for i := range records {
				if got := get(t, kv, strconv.Itoa(i)); got != "value" {
					t.Errorf("cut at write %d, record %d is %q", n, i, got)
				}
			}
			_, err = kv.Reseal(t.Context())
			must(t, err)
			wantStatus(t, kv, seal.Status{Primary: second.IDs()[0], Records: map[string]int{second.IDs()[0]: records}})
		}
	}
}

// TestResealOvertaken has another write or remove each record just before it is
// rewritten.
func TestResealOvertaken(t *testing.T) {
	first := generate(t)
	second, err := first.Rotate()
	must(t, err)
	cases := map[string]struct {
		reason string
		other  func(ctx context.Context, raw store.KV) error
		want   string // "" when it is gone
	}{
		"Removed": {"what is gone stays so", func(ctx context.Context, raw store.KV) error {
			return raw.Delete(ctx, "a", store.Any)
		}, ""},
		"New": {"who wrote with the new key is let alone", func(ctx context.Context, raw store.KV) error {
			_, err := seal.New(raw, second).Put(ctx, "a", []byte("theirs"), store.Any)
			return err
		}, "theirs"},
		"Old": {"who wrote with the old key is looked at again", func(ctx context.Context, raw store.KV) error {
			_, err := seal.New(raw, first).Put(ctx, "a", []byte("theirs"), store.Any)
			return err
		}, "theirs"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			raw := memory.New()
			put(t, seal.New(raw, first), "a", "ours")
			did := false
			between := storetest.Failing{KV: raw, Fail: func(method, _ string) error {
				if method != "Put" || did {
					return nil
				}
				did = true
				return c.other(t.Context(), raw)
			}}
			_, err := seal.New(between, second).Reseal(t.Context())
			must(t, err)
			status, err := seal.New(raw, second).Status(t.Context())
			must(t, err)
			if status.Records[first.IDs()[0]] != 0 || !did {
				t.Errorf("%s: a record is left with the old key", c.reason)
			}
			if c.want == "" {
				_, err := raw.Get(t.Context(), "a")
				wantKind(t, c.reason, err, nf.NotFound)
			} else if got := get(t, seal.New(raw, second), "a"); got != c.want {
				t.Errorf("%s: the record is %q", c.reason, got)
			}
		})
	}
}

// TestResealPastDamage has bad records between good ones.
func TestResealPastDamage(t *testing.T) {
	raw, first := memory.New(), generate(t)
	second, err := first.Rotate()
	must(t, err)
	put(t, seal.New(raw, first), "a", "value")
	must(t, rawPut(t, raw, "b-moved", rawValue(t, raw, "a")))
	must(t, rawPut(t, raw, "c-plain", []byte("{}")))
	put(t, seal.New(raw, generate(t)), "d-strange", "value")
	put(t, seal.New(raw, first), "e", "value")
	kv := seal.New(raw, second)
	report, err := kv.Reseal(t.Context())
	wantKind(t, "bad records are told", err, nf.Internal)
	if report.Failed != 3 || report.Rewritten != 2 {
		t.Errorf("%d failed and %d are rewritten, want 3 and 2", report.Failed, report.Rewritten)
	}
	for _, name := range []string{"b-moved", "c-plain", "d-strange", "3 records"} {
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not tell %q: %v", name, err)
		}
	}
	status, err := kv.Status(t.Context())
	must(t, err)
	if status.Plain != 1 || len(status.Missing) != 1 || status.Records[status.Primary] != 2 {
		t.Errorf("the status is %+v, want one plain, one missing, two current", status)
	}
}

// TestRotateBesideWriters has records written by several replicas while their
// keys are rotated, everything is sealed again, and the old keys are thrown away.
func TestRotateBesideWriters(t *testing.T) {
	const replicas, records, rotations = 3, 6, 4
	raw, path := memory.New(), filepath.Join(t.TempDir(), "keys")
	must(t, generate(t).Save(t.Context(), path, nil))
	now := &clock{}
	open := func() *seal.Store {
		keys, err := seal.Follow(t.Context(), path, nil, now.time)
		must(t, err)
		return seal.New(raw, keys)
	}
	admin := open()
	type counter struct{ N int }
	name := func(i int) string { return "record-" + strconv.Itoa(i) }
	for i := range records {
		must(t, store.NewTable[counter](admin, "counters/", "counter").Insert(t.Context(), name(i), counter{}))
	}
	var stop atomic.Bool
	var writes [records]atomic.Int64
	var all errgroup.Group
	for range replicas {
		table := store.NewTable[counter](open(), "counters/", "counter")
		all.Go(func() error {
			for i := 0; !stop.Load(); i = (i + 1) % records {
				if _, err := table.Update(t.Context(), name(i), func(c *counter) error { c.N++; return nil }); err != nil {
					return err
				}
				writes[i].Add(1)
			}
			return nil
		})
	}
	all.Go(func() error {
		defer stop.Store(true)
		for range rotations {
			rotate(t, path)
			now.pass(time.Second)
			if _, err := admin.Reseal(t.Context()); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, all.Wait())
	_, err := admin.Reseal(t.Context())
	must(t, err)
	keys, err := seal.Load(t.Context(), path, nil)
	must(t, err)
	pruned, err := keys.Prune()
	must(t, err)
	table := store.NewTable[counter](seal.New(raw, pruned), "counters/", "counter")
	for i := range records {
		c, err := table.Get(t.Context(), name(i))
		must(t, err)
		if int64(c.N) != writes[i].Load() {
			t.Errorf("record %d was written %d times and says %d", i, writes[i].Load(), c.N)
		}
	}
}

func wantStatus(t *testing.T, kv *seal.Store, want seal.Status) {
	t.Helper()
	got, err := kv.Status(t.Context())
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
}
