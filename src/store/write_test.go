package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// TestTableOps writes records of two tables in order.
func TestTableOps(t *testing.T) {
	onEach(t, func(t *testing.T, kv store.KV) {
		ctx, table, texts := t.Context(), records(kv), store.NewTable[string](kv, "texts/", "text")
		must(t, table.Insert(ctx, "replaced", record{ID: "replaced"}))
		must(t, table.Insert(ctx, "deleted", record{ID: "deleted"}))
		must(t, table.Insert(ctx, "any", record{ID: "any"}))
		must(t, texts.Put(ctx, "put", "old"))
		v, replaced, err := table.GetRevision(ctx, "replaced")
		must(t, err)
		v.Count++
		_, deleted, err := table.GetRevision(ctx, "deleted")
		must(t, err)
		_, err = store.Write(ctx, kv, []store.Op{
			made(t)(texts.PutOp("put", "new")),
			made(t)(table.InsertOp("inserted x", record{ID: "inserted x"})),
			made(t)(table.ReplaceOp("replaced", v, replaced)),
			made(t)(table.DeleteOp("deleted", deleted)),
			made(t)(table.DeleteOp("any", store.Any)),
			made(t)(table.DeleteOp("never", store.Any)),
			made(t)(table.CheckOp("nothing", store.Absent)),
		})
		must(t, err)
		got, err := table.List(ctx, "")
		must(t, err)
		if diff := cmp.Diff([]record{{ID: "inserted x"}, {ID: "replaced", Count: 1}}, got); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		text, err := texts.Get(ctx, "put")
		must(t, err)
		if text != "new" {
			t.Errorf("the text is %q", text)
		}
	})
}

// TestTableOpsFail compares the errors of ops with those of the table's own
// writes.
func TestTableOpsFail(t *testing.T) {
	table := records(memory.New())
	cases := map[string]struct {
		reason string
		op     func(now store.Revision) (store.Op, error)
		kind   nf.Kind
		want   string // the error
	}{
		"Insert": {"the record exists", func(store.Revision) (store.Op, error) { return table.InsertOp("x", record{}) },
			nf.Exists, `cannot insert test record "x": it exists already`},
		"Replace": {"the record has changed", func(now store.Revision) (store.Op, error) { return table.ReplaceOp("x", record{}, now-1) },
			nf.Conflict, `cannot update test record "x": cannot write key "records/x": conflict`},
		"Delete": {"the record has changed", func(now store.Revision) (store.Op, error) { return table.DeleteOp("x", now-1) },
			nf.Conflict, `cannot delete test record "x": cannot delete key "records/x": conflict`},
		"DeleteAbsent": {"the record is gone", func(now store.Revision) (store.Op, error) { return table.DeleteOp("y", now) },
			nf.Conflict, `cannot delete test record "y": cannot delete key "records/y": it has another revision, or does not exist`},
		"Check": {"the record has changed", func(now store.Revision) (store.Op, error) { return table.CheckOp("x", now-1) },
			nf.Conflict, `cannot check test record "x": cannot check key "records/x": it has another revision, or does not exist`},
		"Put": {"the key is too long", func(store.Revision) (store.Op, error) {
			return table.PutOp(strings.Repeat("i", 600), record{})
		}, nf.Invalid, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			kv := memory.New()
			must(t, records(kv).Insert(t.Context(), "x", record{ID: "old"}))
			must(t, records(kv).Put(t.Context(), "x", record{ID: "x"}))
			_, now, err := records(kv).GetRevision(t.Context(), "x")
			must(t, err)
			_, err = store.Write(t.Context(), kv, []store.Op{made(t)(c.op(now))})
			wantKind(t, c.reason, err, c.kind)
			if failed, ok := errors.AsType[*store.WriteError](err); !ok || failed.Index != 0 {
				t.Errorf("%s: the error is %#v, want one of the first op", c.reason, err)
			}
			if c.want != "" && err != nil && err.Error() != c.want {
				t.Errorf("%s: the error is %q, want %q", c.reason, err, c.want)
			}
		})
	}
}

// TestTableOpsRefused has records that no op can write: there is no list that
// could be written in part.
func TestTableOpsRefused(t *testing.T) {
	texts := store.NewTable[any](memory.New(), "texts/", "text")
	cases := map[string]struct {
		reason string
		id     string
		value  any
		kind   nf.Kind
	}{
		"Limit":    {"one byte above the limit", "x", strings.Repeat("x", store.MaxValue-1), nf.TooLarge},
		"EmptyID":  {"an empty id names nothing", "", "x", nf.Invalid},
		"Encoding": {"a channel is not JSON", "x", make(chan int), nf.Internal},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, insert := texts.InsertOp(c.id, c.value)
			_, put := texts.PutOp(c.id, c.value)
			_, replace := texts.ReplaceOp(c.id, c.value, 1)
			for verb, err := range map[string]error{"insert": insert, "put": put, "update": replace} {
				wantKind(t, c.reason, err, c.kind)
				if want := "cannot " + verb + ` text "` + c.id + `"`; err != nil && !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s: the error is %q, want one that begins with %q", c.reason, err, want)
				}
			}
		})
	}
	_, err := texts.DeleteOp("", store.Any)
	wantKind(t, "an empty id names nothing", err, nf.Invalid)
	_, err = texts.InsertOp("x", strings.Repeat("x", store.MaxValue-len(`""`)))
	must(t, err)
}

// made returns a function that fails the test if an op cannot be made.
func made(t *testing.T) func(store.Op, error) store.Op {
	return func(op store.Op, err error) store.Op {
		t.Helper()
		must(t, err)
		return op
	}
}
