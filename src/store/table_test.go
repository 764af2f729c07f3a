package store_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

type record struct {
	ID    string   `json:"id"`
	Count int      `json:"count,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

func records(kv store.KV) store.Table[record] {
	return store.NewTable[record](kv, "records/", "test record")
}

func TestTable(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		ctx, table := t.Context(), records(kv)
		must(t, table.Insert(ctx, "a/b c", record{ID: "a/b c"}))
		wantKind(t, "a record is not created twice", table.Insert(ctx, "a/b c", record{}), nf.Exists)
		must(t, table.Put(ctx, "a/d", record{ID: "a/d"}))
		must(t, table.Put(ctx, "a/d", record{ID: "a/d", Count: 4}))

		got, err := table.Update(ctx, "a/d", func(r *record) error { r.Count++; return nil })
		must(t, err)
		again, err := table.Get(ctx, "a/d")
		must(t, err)
		for _, r := range []record{got, again} {
			if diff := cmp.Diff(record{ID: "a/d", Count: 5}, r); diff != "" {
				t.Errorf("after an update (-want +got):\n%s", diff)
			}
		}
		list, err := table.List(ctx, "a/")
		must(t, err)
		if diff := cmp.Diff([]record{{ID: "a/b c"}, {ID: "a/d", Count: 5}}, list); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		existing, err := collect(table.Existing(ctx, ids("a/d", "a/d", "a/c", "a/b c")))
		must(t, err)
		if diff := cmp.Diff([]record{{ID: "a/d", Count: 5}, {ID: "a/b c"}}, existing); diff != "" {
			t.Errorf("existing (-want +got):\n%s", diff)
		}
		must(t, table.Delete(ctx, "a/d"))
		wantKind(t, "a record is removed once", table.Delete(ctx, "a/d"), nf.NotFound)
		if diff := cmp.Diff([]string{"records/a/b!20c"}, keysOf(t, kv, "")); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	})
}

func collect[T any](items iter.Seq2[T, error]) (out []T, err error) {
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// ids yields ids.
func ids(all ...string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, id := range all {
			if !yield(id, nil) {
				return
			}
		}
	}
}

// TestTableErrors sees to it that every method fails with the kind of what
// went wrong below, and names the record.
func TestTableErrors(t *testing.T) {
	edit := func(*record) error { return nil }
	allow := func(record) error { return nil }
	calls := map[string]func(context.Context, store.Table[record], string) error{
		"get": func(ctx context.Context, t store.Table[record], id string) error {
			_, err := t.Get(ctx, id)
			return err
		},
		"insert": func(ctx context.Context, t store.Table[record], id string) error { return t.Insert(ctx, id, record{}) },
		"put":    func(ctx context.Context, t store.Table[record], id string) error { return t.Put(ctx, id, record{}) },
		"update": func(ctx context.Context, t store.Table[record], id string) error {
			_, err := t.Update(ctx, id, edit)
			return err
		},
		"delete":   func(ctx context.Context, t store.Table[record], id string) error { return t.Delete(ctx, id) },
		"deleteif": func(ctx context.Context, t store.Table[record], id string) error { return t.DeleteIf(ctx, id, allow) },
	}
	down := storetest.Failing{KV: memory.New(), Fail: func(string, string) error {
		return nf.E(nf.Unreachable, "talk to", "the database", nil)
	}}
	for op, call := range calls {
		t.Run(op, func(t *testing.T) {
			ctx, table := t.Context(), records(memory.New())
			err := call(ctx, records(down), `x"y`)
			wantKind(t, "the database is down", err, nf.Unreachable)
			if want := `test record "x\"y"`; !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not name %s", err, want)
			}
			wantKind(t, "an empty id names nothing", call(ctx, table, ""), nf.Invalid)
			wantKind(t, "an id has its limit", call(ctx, table, strings.Repeat("i", 600)), nf.Invalid)
			if op != "insert" && op != "put" {
				err = call(ctx, table, "x")
				wantKind(t, "there is no record", err, nf.NotFound)
				if want := "cannot " + strings.TrimSuffix(op, "if") + ` test record "x": it does not exist`; err != nil && err.Error() != want {
					t.Errorf("the error says %q, want %q", err, want)
				}
			}
		})
	}
	_, err := records(down).List(t.Context(), "")
	wantKind(t, "the database is down", err, nf.Unreachable)
}

// TestTableLimit has a driver that would accept more: a record keeps to what
// every store accepts, so that it can be sealed.
func TestTableLimit(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		const frame = len(`""`)
		ctx, table := t.Context(), store.NewTable[string](kv, "texts/", "text")
		largest := strings.Repeat("x", store.MaxValue-frame)
		must(t, table.Insert(ctx, "a", largest))
		wantKind(t, "one byte above the limit", table.Insert(ctx, "b", largest+"x"), nf.TooLarge)
		wantKind(t, "one byte above the limit", table.Put(ctx, "a", largest+"x"), nf.TooLarge)
		_, err := table.Update(ctx, "a", func(s *string) error { *s += "x"; return nil })
		wantKind(t, "one byte above the limit", err, nf.TooLarge)
		got, err := table.List(ctx, "")
		must(t, err)
		if len(got) != 1 || got[0] != largest {
			t.Errorf("%d records are there after writes that were refused, want the first, unchanged", len(got))
		}
	})
}

func TestTableSpoiled(t *testing.T) {
	kv := memory.New()
	table := records(kv)
	must(t, table.Insert(t.Context(), "a", record{ID: "a"}))
	_, err := kv.Put(t.Context(), "records/b", []byte("{"), store.Absent)
	must(t, err)
	must(t, table.Insert(t.Context(), "c", record{ID: "c"}))

	_, err = table.Get(t.Context(), "b")
	wantKind(t, "it is no JSON", err, nf.Internal)
	_, err = table.List(t.Context(), "")
	wantKind(t, "it is no JSON", err, nf.Internal)
	seen := 0
	for _, err := range table.All(t.Context(), "") {
		if seen++; (err != nil) != (seen == 2) {
			t.Errorf("entry %d has the error %v", seen, err)
		}
	}
	if seen != 2 {
		t.Errorf("a sequence with an error at 2 has %d entries", seen)
	}

	channels := store.NewTable[any](kv, "channels/", "channel")
	wantKind(t, "a channel is no JSON", channels.Put(t.Context(), "x", make(chan int)), nf.Internal)
}

func TestTableAllStops(t *testing.T) {
	table := records(memory.New())
	for _, id := range []string{"a", "b", "c"} {
		must(t, table.Insert(t.Context(), id, record{ID: id}))
	}
	for r, err := range table.All(t.Context(), "") {
		must(t, err)
		if r.ID == "b" {
			break
		}
	}
}

// TestTableIDs holds for ids of any bytes: different ids are different records,
// and lists are in the order of the ids.
func TestTableIDs(t *testing.T) {
	prefix := 0
	onEach(t, func(t *testing.T, kv store.KV) {
		rapid.Check(t, func(rt *rapid.T) {
			prefix++
			table := store.NewTable[string](kv, strings.Repeat("t", prefix)+":", "text")
			id := rapid.OneOf(rapid.StringN(1, 12, 64), rapid.StringOfN(rapid.SampledFrom([]rune("!~ /%é\x00")), 1, 4, -1),
				rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 8), func(b []byte) string { return string(b) }))
			ids := rapid.SliceOfNDistinct(id, 1, 8, rapid.ID[string]).Draw(rt, "ids")
			for _, id := range ids {
				must(t, table.Insert(t.Context(), id, encode(id)))
			}
			first := rapid.SampledFrom(ids).Draw(rt, "first")
			first = first[:rapid.IntRange(0, len(first)).Draw(rt, "length")]
			want := []string{}
			slices.Sort(ids)
			for _, id := range ids {
				if strings.HasPrefix(id, first) {
					want = append(want, encode(id))
				}
			}
			got, err := table.List(t.Context(), first)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("ids that begin with %q (-want +got):\n%s", first, diff)
			}
			start := id.Draw(rt, "start")
			want, got = []string{}, []string{}
			for _, id := range ids {
				if strings.HasPrefix(id, first) && id >= start {
					want = append(want, encode(id))
				}
			}
			for v, err := range table.From(t.Context(), first, start) {
				must(t, err)
				got = append(got, v)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("ids that begin with %q, from %q (-want +got):\n%s", first, start, diff)
			}
		})
	})
}

// encode keeps bytes that are no UTF-8 whole in JSON.
func encode(id string) string {
	runes := make([]rune, len(id))
	for i := range len(id) {
		runes[i] = rune(id[i])
	}
	return string(runes)
}

func TestUpdateRace(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		const writers, edits = 8, 10
		table := records(kv)
		must(t, table.Insert(t.Context(), "x", record{}))
		var all errgroup.Group
		for range writers {
			all.Go(func() error {
				for range edits {
					if _, err := table.Update(t.Context(), "x", func(r *record) error { r.Count++; return nil }); err != nil {
						return err
					}
				}
				return nil
			})
		}
		must(t, all.Wait())
		got, err := table.Get(t.Context(), "x")
		must(t, err)
		if got.Count != writers*edits {
			t.Errorf("the count is %d after %d increments", got.Count, writers*edits)
		}
	})
}

func TestUpdateStartsAfresh(t *testing.T) {
	kv := memory.New()
	must(t, records(kv).Insert(t.Context(), "x", record{}))
	conflicts, edits := 0, 0
	contended := storetest.Failing{KV: kv, Fail: func(method, _ string) error {
		if method != "Put" || conflicts == 3 {
			return nil
		}
		conflicts++
		return nf.E(nf.Conflict, "write", "a key", nil)
	}}
	got, err := records(contended).Update(t.Context(), "x", func(r *record) error {
		edits++
		r.Notes = append(r.Notes, "note")
		return nil
	})
	must(t, err)
	if edits != 4 {
		t.Errorf("edit ran %d times over 3 conflicts, want 4", edits)
	}
	if diff := cmp.Diff([]string{"note"}, got.Notes); diff != "" {
		t.Errorf("an edit saw the one before it (-want +got):\n%s", diff)
	}
}

func TestUpdateEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	kv := memory.New()
	must(t, records(kv).Insert(ctx, "x", record{}))
	conflicts := 0
	contended := storetest.Failing{KV: kv, Fail: func(method, _ string) error {
		if method == "Get" {
			return nil
		}
		if conflicts++; conflicts == 5 {
			cancel()
		}
		return nf.E(nf.Conflict, "write", "a key", nil)
	}}
	_, err := records(contended).Update(ctx, "x", func(r *record) error { r.Count++; return nil })
	wantKind(t, "the context has ended", err, nf.Unreachable)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not say that the context was cancelled", err)
	}
}

func TestUpdateWritesNothing(t *testing.T) {
	kv := memory.New()
	must(t, records(kv).Insert(t.Context(), "x", record{Count: 1}))
	locked := records(storetest.Failing{KV: kv, Fail: func(method, key string) error {
		if method != "Get" {
			t.Errorf("%s of %s", method, key)
		}
		return nil
	}})
	got, err := locked.Update(t.Context(), "x", func(r *record) error { r.Count *= 1; return nil })
	must(t, err)
	if got.Count != 1 {
		t.Errorf("an update that changes nothing returns %v", got)
	}
	refusal := errors.New("no")
	if _, err := locked.Update(t.Context(), "x", func(r *record) error { r.Count++; return refusal }); !same(err, refusal) {
		t.Errorf("the error is %v, want that of edit as it is", err)
	}
	if err := locked.DeleteIf(t.Context(), "x", func(record) error { return refusal }); !same(err, refusal) {
		t.Errorf("the error is %v, want that of cond as it is", err)
	}
}

// TestOvertaken lets another process write between the reading of a record and its
// removal or update.
func TestOvertaken(t *testing.T) {
	busy := errors.New("busy")
	ifZero := func(r record) error {
		if r.Count > 0 {
			return busy
		}
		return nil
	}
	plus := func(r *record) error { r.Count++; return nil }
	remove := func(table store.Table[record]) error { return table.DeleteIf(t.Context(), "x", ifZero) }
	update := func(table store.Table[record]) error { _, err := table.Update(t.Context(), "x", plus); return err }
	cases := map[string]struct {
		reason string
		others func(store.Table[record]) error
		call   func(store.Table[record]) error
		want   func(error) bool
		left   []record
	}{
		"DeleteAfterUpdate": {"the condition holds for what is removed", update, remove, func(err error) bool { return same(err, busy) }, []record{{Count: 1}}},
		"DeleteAfterDelete": {"it is gone", remove, remove, notFound, []record{}},
		"UpdateAfterUpdate": {"no update is lost", update, update, func(err error) bool { return err == nil }, []record{{Count: 2}}},
		"UpdateAfterDelete": {"an update does not bring a record back", remove, update, notFound, []record{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, kv store.KV) {
				must(t, records(kv).Insert(t.Context(), "x", record{}))
				overtaken := false
				err := c.call(records(storetest.Failing{KV: kv, Fail: func(method, _ string) error {
					if method == "Get" || overtaken {
						return nil
					}
					overtaken = true
					must(t, c.others(records(kv)))
					return nil
				}}))
				if !c.want(err) {
					t.Errorf("%s: the error is %v", c.reason, err)
				}
				left, err := records(kv).List(t.Context(), "")
				must(t, err)
				if diff := cmp.Diff(c.left, left); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
			})
		})
	}
}

// same says that an error is another, and is not wrapped.
func same(err, other error) bool {
	return errors.Is(err, other) && err.Error() == other.Error()
}

func notFound(err error) bool { return err != nil && nf.KindOf(err) == nf.NotFound }
