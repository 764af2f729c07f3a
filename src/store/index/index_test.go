package index_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/index"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.KV { return running(t, index.Config{KV: memory.New()}) })
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tables := []index.Table{index.Of[nf.Instance](prefix)}
	for name, cfg := range map[string]index.Config{
		"KV": {Tables: tables}, "Open": {KV: memory.New(), Tables: tables, Changes: newShared()},
	} {
		if _, err := index.New(cfg); err == nil {
			t.Errorf("an index without %s was created", name)
		}
	}
}

// TestFind compares the index with a scan of records that were there before it, and after
// changes of every kind.
func TestFind(t *testing.T) {
	t.Parallel()
	below := memory.New()
	insertTwelve(t, below)
	must(t, store.NewTable[nf.Package](below, "packages/", "package").Insert(t.Context(), "p", nf.Package{ID: "p"}))
	x := running(t, index.Config{KV: below})
	x.agrees(t)
	if got := x.Status()["instances"]; got.Records != 12 {
		t.Errorf("the index has %d records", got.Records)
	}
	steps := map[string]func() error{
		"insert": func() error { return x.instances.Insert(t.Context(), "i20", instance("i20", 20)) },
		"update": func() error {
			_, err := x.instances.Update(t.Context(), "i03", func(in *nf.Instance) error { in.State, in.Name = "failed", "n3"; return nil })
			return err
		},
		"delete": func() error { return x.instances.Delete(t.Context(), "i04") },
		"write": func() error {
			put, err := x.instances.PutOp("i05", instance("i05", 8))
			gone, err2 := x.instances.DeleteOp("i06", store.Any)
			_, err3 := store.Write(t.Context(), x, []store.Op{put, gone})
			return firstOf(err, err2, err3)
		},
		"conflict": func() error {
			if err := x.instances.Insert(t.Context(), "i07", instance("i07", 99)); nf.KindOf(err) != nf.Exists {
				return fmt.Errorf("the second insertion returns %w", err)
			}
			return nil
		},
	}
	for name, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		x.agrees(t)
	}
	if _, ok := x.instances.Find(t.Context(), nf.Cursor{}); ok {
		t.Error("an index was used without a condition")
	}
	packages := store.NewTable[nf.Package](x, "packages/", "package")
	if _, ok := packages.Find(t.Context(), questions()["scope"]); ok {
		t.Error("a table without an index was searched")
	}
}

// TestReads counts the reads of pages with a filter, with few and with many records. The
// records of the page are read, and no others.
func TestReads(t *testing.T) {
	t.Parallel()
	for _, number := range []int{300, 3000} {
		var reads atomic.Int32
		x := running(t, index.Config{KV: storetest.Failing{KV: memory.New(), Fail: func(method, _ string) error {
			if method == "Get" || method == "List" {
				reads.Add(1)
			}
			return nil
		}}})
		for n := range number {
			id := fmt.Sprintf("i%05d", n)
			must(t, x.instances.Insert(t.Context(), id, instance(id, n)))
		}
		for name, tc := range map[string]struct {
			after, region string
			want          int32
		}{"first": {"", "east", 20}, "marker": {"i00100", "east", 20}, "last": {fmt.Sprintf("i%05d", number-11), "east", 5}, "empty": {"", "north", 0}} {
			reads.Store(0)
			items := int32(0)
			found, _ := x.instances.Find(t.Context(), nf.Cursor{After: tc.after, Where: []nf.Attribute{{Name: nf.AttributeRegion, Value: tc.region}}})
			for _, err := range found {
				must(t, err)
				if items++; items == 20 {
					break
				}
			}
			if items != tc.want || reads.Load() != tc.want {
				t.Errorf("%s page of %d records: %d items, %d reads, want %d of both", name, number, items, reads.Load(), tc.want)
			}
		}
	}
}

// TestWritesDuringFill changes records while the index is filled: those that were read
// already, and those that were not.
func TestWritesDuringFill(t *testing.T) {
	t.Parallel()
	below := memory.New()
	insertTwelve(t, below)
	reached, proceed := make(chan struct{}), make(chan struct{})
	x := over(t, index.Config{KV: pausing{below, "instances/i06", reached, proceed}})
	x.run(t)
	<-reached
	if _, ok := x.instances.Find(t.Context(), questions()["region"]); ok {
		t.Error("an index was used before it was filled")
	}
	for _, n := range []int{2, 8} {
		update, gone, made := fmt.Sprintf("i%02d", n), fmt.Sprintf("i%02d", n+1), fmt.Sprintf("i%02d-new", n)
		must(t, x.instances.Put(t.Context(), update, instance(update, n+1)))
		must(t, x.instances.Delete(t.Context(), gone))
		must(t, x.instances.Insert(t.Context(), made, instance(made, n)))
	}
	close(proceed)
	x.untilFilled(t)
	x.agrees(t)
}

// pausing is a database whose lists wait before they yield a key.
type pausing struct {
	store.KV

	at               string
	reached, proceed chan struct{}
}

func (p pausing) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range p.KV.List(ctx, prefix, start) {
			if e.Key == p.at && ctx.Err() == nil {
				select {
				case <-p.reached:
				default:
					close(p.reached)
					<-p.proceed
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestUnknownResults has writes that fail although they were carried out, and others that
// were not. Until the record was read, the index offers it.
func TestUnknownResults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		lost   bool // the write was carried out
		write  func(indexed) error
	}{
		"PutLost":    {"a new value", true, func(x indexed) error { return x.instances.Put(t.Context(), "i01", instance("i01", 2)) }},
		"PutFailed":  {"the former value", false, func(x indexed) error { return x.instances.Put(t.Context(), "i01", instance("i01", 2)) }},
		"NewLost":    {"a new record", true, func(x indexed) error { return x.instances.Insert(t.Context(), "i09", instance("i09", 2)) }},
		"NewFailed":  {"no record", false, func(x indexed) error { return x.instances.Insert(t.Context(), "i09", instance("i09", 2)) }},
		"GoneLost":   {"a deleted record", true, func(x indexed) error { return x.instances.Delete(t.Context(), "i01") }},
		"GoneFailed": {"a record that was to be deleted", false, func(x indexed) error { return x.instances.Delete(t.Context(), "i01") }},
		"List": {"the first writes of several", true, func(x indexed) error {
			first, err := x.instances.PutOp("i01", instance("i01", 2))
			second, err2 := x.instances.InsertOp("i09", instance("i09", 2))
			must(t, firstOf(err, err2))
			_, err = store.Write(t.Context(), x, []store.Op{first, second})
			return err
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var away atomic.Bool
			var reads atomic.Int32
			fail := func(method, _ string) error {
				if reads.Add(1); away.Load() && (method == "Put" || method == "Delete") {
					return nf.E(nf.Unreachable, "use", "the store", nil)
				}
				return nil
			}
			kv := storetest.Failing{KV: memory.New(), Fail: fail}
			if tc.lost {
				kv = storetest.Failing{KV: memory.New(), Lose: fail}
			}
			x := running(t, index.Config{KV: kv})
			for n := range 3 {
				id := fmt.Sprintf("i%02d", n)
				must(t, x.instances.Insert(t.Context(), id, instance(id, n)))
			}
			away.Store(true)
			if err := tc.write(x); nf.KindOf(err) != nf.Unreachable {
				t.Fatalf("%s: the write returns %v", tc.reason, err)
			}
			away.Store(false)
			x.agrees(t)
			reads.Store(0)
			if x.find(t, questions()["nothing"]); reads.Load() != 0 {
				t.Errorf("%s: the record is read %d times after it was read", tc.reason, reads.Load())
			}
		})
	}
}

// TestPartialWrite has a list of writes that fails in the middle.
func TestPartialWrite(t *testing.T) {
	t.Parallel()
	x := running(t, index.Config{KV: memory.New()})
	must(t, x.instances.Insert(t.Context(), "i02", instance("i02", 1)))
	first, err := x.instances.InsertOp("i01", instance("i01", 1))
	second, err2 := x.instances.InsertOp("i02", instance("i02", 2))
	third, err3 := x.instances.InsertOp("i03", instance("i03", 2))
	must(t, firstOf(err, err2, err3))
	if _, err := store.Write(t.Context(), x, []store.Op{first, second, third}); nf.KindOf(err) != nf.Exists {
		t.Fatalf("the writes return %v", err)
	}
	x.agrees(t)
	if got := x.Status()["instances"].Records; got != 2 {
		t.Errorf("the index has %d records", got)
	}
}

// TestTooMany has more records than the index may have, in the store and later.
func TestTooMany(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]int{"Start": 5, "Later": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			below := memory.New()
			table := store.NewTable[nf.Instance](below, prefix, "VNF instance")
			for n := range before {
				id := fmt.Sprintf("i%02d", n)
				must(t, table.Insert(t.Context(), id, instance(id, n)))
			}
			var log bytes.Buffer
			x := over(t, index.Config{KV: below, Most: 4, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			ended := make(chan error, 1)
			go func() { ended <- x.Run(t.Context()) }()
			if before < 4 {
				x.untilFilled(t)
				for n := range 3 {
					id := fmt.Sprintf("j%02d", n)
					must(t, x.instances.Insert(t.Context(), id, instance(id, n)))
				}
			}
			must(t, <-ended) // the index is given up
			if _, ok := x.instances.Find(t.Context(), questions()["region"]); ok {
				t.Error("the index is used")
			}
			if got := x.Status()["instances"]; got != (index.Status{}) {
				t.Errorf("its state is %+v", got)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "limit=4") {
				t.Errorf("the log has %d lines: %s", n, &log)
			}
		})
	}
}

// TestUnreadable has a record that is not JSON. The index offers it, so that a list fails
// as it does without an index.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	x := running(t, index.Config{KV: memory.New()})
	if _, err := x.Put(t.Context(), prefix+"i01", []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		found, _ := x.instances.Find(t.Context(), questions()["nothing"])
		failed := 0
		for _, err := range found {
			if err != nil {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("the list has %d errors", failed)
		}
	}
	must(t, x.instances.Put(t.Context(), "i01", instance("i01", 1)))
	x.agrees(t)
}

// TestConcurrentWrites has many writers of the same records, and lists at the same time.
// A list never leaves out a record that always meets its conditions.
func TestConcurrentWrites(t *testing.T) {
	t.Parallel()
	x := running(t, index.Config{KV: memory.New()})
	always := instance("always", 0)
	must(t, x.instances.Insert(t.Context(), "always", always))
	var group errgroup.Group
	for w := range 8 {
		group.Go(func() error {
			for n := range 200 {
				id := fmt.Sprintf("i%02d", (n*7+w)%10)
				var err error
				switch n % 4 {
				case 0, 1:
					err = x.instances.Put(t.Context(), id, instance(id, n+w))
				case 2:
					err = nf.IgnoreNotFound(x.instances.Delete(t.Context(), id))
				default:
					_, err = x.instances.Update(t.Context(), "always", func(in *nf.Instance) error { in.Revision++; return nil })
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		group.Go(func() error {
			for range 50 {
				found, _ := x.instances.Find(t.Context(), nf.Cursor{Where: []nf.Attribute{{Name: nf.AttributeRegion, Value: "east"}}})
				names := []string{}
				for in, err := range found {
					if err != nil {
						return err
					}
					names = append(names, in.ID)
				}
				if names[0] != "always" || !slices.IsSorted(names) {
					return fmt.Errorf("the list has %v", names)
				}
			}
			return nil
		})
	}
	must(t, group.Wait())
	x.agrees(t)
}

// TestSummariesHaveNoSecrets compares the fields of a record with those of its summary.
func TestSummariesHaveNoSecrets(t *testing.T) {
	t.Parallel()
	in := instance("i01", 1)
	in.Inputs.Parameters = map[string]any{"password": "s3cret"}
	in.Hidden, in.Message, in.Annotations = []string{"s3cret"}, "s3cret", map[string]string{"request": "s3cret"}
	if text := fmt.Sprintf("%+v", in.Summary()); strings.Contains(text, "s3cret") {
		t.Errorf("the summary is %s", text)
	}
	if diff := cmp.Diff(nf.Scope{Project: "b", Region: "west"}, in.Summary().Scope); diff != "" {
		t.Error(diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
