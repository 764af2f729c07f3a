package schema_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/schema"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestOpenNew(t *testing.T) {
	raw, keys := memory.New(), generate(t)
	config, sealed := service(raw, keys)
	must(t, schema.Open(t.Context(), config))
	wantRecord(t, raw, schema.Record{Version: 2, SealedBy: keys.IDs()[0], Created: clock()})
	must(t, store.NewTable[nf.Region](sealed, "regions/", "cloud region").Insert(t.Context(), "east", nf.Region{ID: "east"}))
	before := dump(t, raw)
	must(t, schema.Open(t.Context(), config))
	if diff := cmp.Diff(before, dump(t, raw)); diff != "" {
		t.Errorf("opening a store that is up to date changed it (-want +got):\n%s", diff)
	}
}

func TestOpenFormer(t *testing.T) {
	raw, keys := former(t), generate(t)
	config, sealed := service(raw, keys)
	var log bytes.Buffer
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	must(t, schema.Open(t.Context(), config))
	wantRecord(t, raw, schema.Record{Version: 2, SealedBy: keys.IDs()[0], Created: clock(), Migrated: clock()})
	wantFormer(t, "after the migration", sealed)
	status, err := sealed.Status(t.Context())
	must(t, err)
	if status.Plain != 0 || status.Records[keys.IDs()[0]] != formerRecords {
		t.Errorf("the records are sealed like this: %+v", status)
	}
	if !strings.Contains(log.String(), "seal every record") {
		t.Errorf("the log does not say what was done: %s", log.String())
	}
}

// TestOpenDies has the process die at every write of a migration, before it and
// after it, and starts it again.
func TestOpenDies(t *testing.T) {
	const writes = formerRecords + 2 // the record is written before and after
	keys := generate(t)
	whole := storetest.NewCrashingStore(former(t))
	config, _ := service(whole, keys)
	must(t, schema.Open(t.Context(), config))
	if whole.Writes() != writes {
		t.Fatalf("a migration has %d writes, want %d", whole.Writes(), writes)
	}
	for n := 1; n <= writes; n++ {
		for _, done := range []bool{false, true} {
			raw := former(t)
			crashing := storetest.NewCrashingStore(raw)
			crashing.CrashAt(n, done)
			config, _ := service(crashing, keys)
			wantKind(t, "it died", schema.Open(t.Context(), config), nf.Unreachable)
			rec, err := schema.Read(t.Context(), raw)
			if last := n == writes && done; err == nil && rec.Version == 2 != last {
				t.Errorf("cut at write %d, the store is said to be of version %d", n, rec.Version)
			}
			config, sealed := service(raw, keys)
			must(t, schema.Open(t.Context(), config))
			wantRecord(t, raw, schema.Record{Version: 2, SealedBy: keys.IDs()[0], Created: clock(), Migrated: clock()})
			wantFormer(t, "after two starts", sealed)
		}
	}
}

// TestOpenNewDies is the same for a store that is empty.
func TestOpenNewDies(t *testing.T) {
	for _, done := range []bool{false, true} {
		raw, keys := memory.New(), generate(t)
		crashing := storetest.NewCrashingStore(raw)
		crashing.CrashAt(1, done)
		config, _ := service(crashing, keys)
		wantKind(t, "it died", schema.Open(t.Context(), config), nf.Unreachable)
		config, _ = service(raw, keys)
		must(t, schema.Open(t.Context(), config))
		wantRecord(t, raw, schema.Record{Version: 2, SealedBy: keys.IDs()[0], Created: clock()})
	}
}

// TestOpenTogether has several replicas open a store at once, each of which goes
// to work as soon as it may.
func TestOpenTogether(t *testing.T) {
	cases := map[string]func(*testing.T) *memory.Store{
		"new":    func(*testing.T) *memory.Store { return memory.New() },
		"former": former,
	}
	for name, arrange := range cases {
		t.Run(name, func(t *testing.T) {
			const replicas, rounds = 6, 5
			raw, keys := arrange(t), generate(t)
			type counter struct{ N int }
			var all errgroup.Group
			for range replicas {
				all.Go(func() error {
					config, sealed := service(raw, keys)
					if err := schema.Open(t.Context(), config); err != nil {
						return err
					}
					counters := store.NewTable[counter](sealed, "counters/", "counter")
					err := counters.Insert(t.Context(), "one", counter{})
					if err != nil && nf.KindOf(err) != nf.Exists {
						return err
					}
					for range rounds {
						if _, err := counters.Update(t.Context(), "one", func(c *counter) error { c.N++; return nil }); err != nil {
							return err
						}
					}
					return nil
				})
			}
			must(t, all.Wait())
			_, sealed := service(raw, keys)
			c, err := store.NewTable[counter](sealed, "counters/", "counter").Get(t.Context(), "one")
			must(t, err)
			if c.N != replicas*rounds {
				t.Errorf("the counter is %d, want %d", c.N, replicas*rounds)
			}
			if name == "former" {
				wantFormer(t, "after all are at work", sealed)
			}
		})
	}
}

// TestOpenLate has a replica find a store without a version, and another fill
// it before the first has looked at the contents, or noted the version.
func TestOpenLate(t *testing.T) {
	for _, late := range []string{"List", "Put"} {
		raw, keys := memory.New(), generate(t)
		first := true
		slow := storetest.Failing{KV: raw, Fail: func(method, _ string) error {
			if method != late || !first {
				return nil
			}
			first = false
			config, sealed := service(raw, keys)
			if err := schema.Open(t.Context(), config); err != nil {
				return err
			}
			_, err := sealed.Put(t.Context(), "regions/east", []byte("{}"), store.Absent)
			return err
		}}
		config, sealed := service(slow, keys)
		migrated := false
		config.Migrations[0].Run = func(context.Context) error { migrated = true; return nil }
		must(t, schema.Open(t.Context(), config))
		if migrated || first {
			t.Errorf("late at its first %s, it migrated what another replica of this release has written", late)
		}
		_, err := sealed.Get(t.Context(), "regions/east")
		must(t, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	boom := errors.New("boom")
	fails := func(c *schema.Config) {
		c.Migrations[0].Run = func(context.Context) error { return nf.E(nf.TooLarge, "seal", "a record", boom) }
	}
	none := func(*schema.Config) {}
	cases := map[string]struct {
		reason string
		key    string
		value  string
		change func(*schema.Config)
		kind   nf.Kind
		text   string
	}{
		"Later":      {"a later version is not understood", recordKey, `{"version":7,"more":true}`, none, nf.Unsupported, "version 7, but this release supports version 2"},
		"Restore":    {"half a store is not used", "meta/restore", `{}`, none, nf.Conflict, "run it again"},
		"NoVersion":  {"a record says a version", recordKey, `{}`, none, nf.Internal, recordKey},
		"NoJSON":     {"a record is JSON", recordKey, `2`, none, nf.Internal, recordKey},
		"Migration":  {"a migration's error is told with its kind", "regions/east", `{}`, fails, nf.TooLarge, "from version 1 to 2 (seal every record)"},
		"NoRaw":      {"there has to be a store", "x", "", func(c *schema.Config) { c.Raw = nil }, nf.Internal, "Raw"},
		"Unopenable": {"what is sealed by another's key is not sealed again", "regions/east", "\xb5k8seal\x01\x011", none, nf.Unreachable, `"regions/east"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			raw := memory.New()
			put(t, raw, c.key, c.value)
			config, _ := service(raw, generate(t))
			c.change(&config)
			err := schema.Open(t.Context(), config)
			wantKind(t, c.reason, err, c.kind)
			if err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: the error is %q, want %q in it", c.reason, err, c.text)
			}
			if got := dump(t, raw)[c.key]; got != c.value {
				t.Errorf("%s: the record is %q now", c.reason, got)
			}
		})
	}
}

func TestOpenWithOtherKeys(t *testing.T) {
	raw, keys := former(t), generate(t)
	config, _ := service(raw, keys)
	must(t, schema.Open(t.Context(), config))
	before := dump(t, raw)
	config, _ = service(raw, generate(t))
	err := schema.Open(t.Context(), config)
	wantKind(t, "with other keys the store is not used", err, nf.Unreachable)
	if nf.ReasonOf(err) != nf.ReasonKey || !strings.Contains(err.Error(), "last encrypted with key "+keys.IDs()[0]) {
		t.Errorf("the error is %v, want one that names the key", err)
	}
	if diff := cmp.Diff(before, dump(t, raw)); diff != "" {
		t.Errorf("a start that was refused changed the store (-want +got):\n%s", diff)
	}

	rotated, err := keys.Rotate()
	must(t, err)
	config, _ = service(raw, rotated)
	must(t, schema.Open(t.Context(), config))
	rec, err := schema.Read(t.Context(), raw)
	must(t, err)
	if rec.SealedBy != rotated.IDs()[0] {
		t.Errorf("the record names key %s, want the new primary %s", rec.SealedBy, rotated.IDs()[0])
	}
}

// TestOpenDespiteDamage has one record that does not open: the others do.
func TestOpenDespiteDamage(t *testing.T) {
	raw, keys := former(t), generate(t)
	config, _ := service(raw, keys)
	must(t, schema.Open(t.Context(), config))
	put(t, raw, "aaa", "damage")
	var log bytes.Buffer
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	must(t, schema.Open(t.Context(), config))
	if !strings.Contains(log.String(), "aaa") {
		t.Errorf("the log does not name the record: %s", log.String())
	}
}

// TestOpenSteps goes over several versions, and repeats only the step that was
// cut.
func TestOpenSteps(t *testing.T) {
	raw := memory.New()
	put(t, raw, "a", "1")
	var ran [3]atomic.Int32
	fail := true
	step := func(i int) schema.Migration {
		return schema.Migration{Name: "step", Run: func(context.Context) error {
			ran[i].Add(1)
			if i == 1 && fail {
				return nf.E(nf.Unreachable, "step", "on", nil)
			}
			return nil
		}}
	}
	config := schema.Config{Raw: raw, Migrations: []schema.Migration{step(0), step(1), step(2)}}
	wantKind(t, "the second step is cut", schema.Open(t.Context(), config), nf.Unreachable)
	rec, err := schema.Read(t.Context(), raw)
	must(t, err)
	if rec.Version != 2 {
		t.Errorf("after the first step the version is %d, want 2", rec.Version)
	}
	fail = false
	must(t, schema.Open(t.Context(), config))
	got := []int32{ran[0].Load(), ran[1].Load(), ran[2].Load()}
	if diff := cmp.Diff([]int32{1, 2, 1}, got); diff != "" {
		t.Errorf("how often each step ran (-want +got):\n%s", diff)
	}
	must(t, schema.Write(t.Context(), raw, schema.Record{Version: 4, Created: clock()}))
	wantRecord(t, raw, schema.Record{Version: 4, Created: clock()})
	if got := schema.Version(config.Migrations); got != 4 {
		t.Errorf("the program's version is %d, want 4", got)
	}
}

func TestOpenUnreachable(t *testing.T) {
	for _, method := range []string{"Get", "Put", "List"} {
		for _, raw := range []store.KV{memory.New(), former(t)} {
			down := storetest.Failing{KV: raw, Fail: func(m, key string) error {
				if m == method {
					return nf.E(nf.Unreachable, "use", key, nil)
				}
				return nil
			}}
			config, _ := service(down, generate(t))
			wantKind(t, method+" fails", schema.Open(t.Context(), config), nf.Unreachable)
		}
	}
}

// FuzzOpen opens a store whose record is anything.
func FuzzOpen(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"version":1}`, `{"version":2,"sealed_by":"1"}`, `{"version":-1}`, `{"version":1e3}`, `[2]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		raw := memory.New()
		if len(value) > store.MaxValue {
			return
		}
		put(t, raw, recordKey, value)
		err := schema.Open(t.Context(), schema.Config{Raw: raw, Migrations: []schema.Migration{{Run: func(context.Context) error { return nil }}}})
		rec, readErr := schema.Read(t.Context(), raw)
		if err == nil && (readErr != nil || rec.Version != 2) {
			t.Errorf("%q was opened, and then the version is %d, error %v", value, rec.Version, readErr)
		}
		if err != nil && nf.KindOf(err) != nf.Internal && nf.KindOf(err) != nf.Unsupported {
			t.Errorf("%q: the error is %v (%s)", value, err, nf.KindOf(err))
		}
	})
}
