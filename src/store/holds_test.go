package store_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/store/storetest"
)

type thing struct {
	Name     string `json:"name"`
	Removing string `json:"removing,omitempty"`
}

func things(kv store.KV) store.HeldTable[thing] {
	return store.NewHeldTable(kv, "things/", "thing", func(v *thing) *string { return &v.Removing })
}

func instance(id string) nf.Subject { return nf.Subject{Kind: nf.InstanceSubject, ID: id} }

// inA is an instance of the project a, and inB one of b.
func inA(id string) nf.Holder {
	return nf.Holder{Subject: instance(id), Scope: nf.Scope{Project: "a", Region: "east"}}
}
func inB(id string) nf.Holder {
	return nf.Holder{Subject: instance(id), Scope: nf.Scope{Project: "b", Region: "east"}}
}

func network(id string) nf.Holder { return nf.Holder{Subject: nf.Subject{Kind: "network", ID: id}} }

func every(nf.SubjectKind, nf.Scope) bool { return true }

func holdersOf(t *testing.T, h store.Holds, of string, in func(nf.SubjectKind, nf.Scope) bool) []nf.Holder {
	t.Helper()
	var out []nf.Holder
	for holder, err := range h.Holders(t.Context(), of, in) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, holder)
	}
	return out
}

func TestHolds(t *testing.T) {
	ctx, table := t.Context(), things(memory.New())
	for _, name := range []string{"east", "east-2"} {
		if err := table.Insert(ctx, name, thing{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, holder := range []nf.Holder{inA("b"), inA("a"), network("a"), inA("b"), inB("a")} {
		if err := table.Hold(ctx, "east", holder); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Hold(ctx, "nowhere", inA("a")); nf.KindOf(err) != nf.NotFound {
		t.Errorf("what does not exist cannot be held: %v", err)
	}
	if diff := cmp.Diff([]nf.Holder{network("a"), inA("a"), inA("b"), inB("a")}, holdersOf(t, table.Holds(), "east", every)); diff != "" {
		t.Errorf("each holder holds once, and nothing of another name (-want +got):\n%s", diff)
	}
	if got := append(holdersOf(t, table.Holds(), "nowhere", every), holdersOf(t, table.Holds(), "east-2", every)...); got != nil {
		t.Errorf("nobody holds the others, and %v do", got)
	}
	if _, err := table.Remove(ctx, "east"); nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != nf.ReasonHeld {
		t.Errorf("what is held is not removed: %v", err)
	}
	if v, err := table.Get(ctx, "east"); err != nil || v.Removing != "" {
		t.Errorf("a refused removal leaves no mark: %+v, %v", v, err)
	}
	for _, holder := range []nf.Holder{inA("a"), inA("b"), inA("b"), inA("c"), inB("a")} {
		if err := table.Release(ctx, "east", holder); err != nil {
			t.Errorf("to release twice is to release once: %v", err)
		}
	}
	if _, err := table.Remove(ctx, "east"); nf.ReasonOf(err) != nf.ReasonHeld {
		t.Errorf("a holder of another kind with the id of one that has released it still holds: %v", err)
	}
	if err := table.Release(ctx, "east", network("a")); err != nil {
		t.Fatal(err)
	}
	removed, err := table.Remove(ctx, "east")
	if diff := cmp.Diff(thing{Name: "east"}, removed); err != nil || diff != "" {
		t.Errorf("what nobody holds is removed, and returned as it was: %v, %s", err, diff)
	}
	if _, err := table.Remove(ctx, "east"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("once: %v", err)
	}
}

func TestHeldTableUpdate(t *testing.T) {
	ctx, table := t.Context(), things(memory.New())
	if err := table.Insert(ctx, "east", thing{Name: "east"}); err != nil {
		t.Fatal(err)
	}
	got, err := table.Update(ctx, "east", func(v *thing) error { v.Name, v.Removing = "west", "forged"; return nil })
	if diff := cmp.Diff(thing{Name: "west"}, got); err != nil || diff != "" {
		t.Errorf("only holds and removals change the mark: %v (-want +got):\n%s", err, diff)
	}
}

// TestHoldBesideRemoval tries every order in which the calls of a hold and of a
// removal can reach the store, and every death of each in every order. Never is
// a record gone that another process holds, and never does it stay forever because of
// a crashed process.
func TestHoldBesideRemoval(t *testing.T) {
	o := orders{t: t, names: []string{"hold", "remove"}}
	o.start = func(t *testing.T, steps chan<- step) (map[string]func(), func(*testing.T, string, string)) {
		kv := memory.New()
		table := things(kv)
		if err := table.Insert(t.Context(), "x", thing{Name: "x"}); err != nil {
			t.Fatal(err)
		}
		var held, removed error
		processes := map[string]func(){
			"hold":   func() { held = things(stepped(kv, "hold", steps)).Hold(t.Context(), "x", inA("user")) },
			"remove": func() { _, removed = things(stepped(kv, "remove", steps)).Remove(t.Context(), "x") },
		}
		return processes, func(t *testing.T, order, dead string) {
			_, err := table.Get(t.Context(), "x")
			there := err == nil
			holders := holdersOf(t, table.Holds(), "x", every)
			if held == nil && (!there || len(holders) != 1) {
				t.Errorf("%s: what is held is gone", order)
			}
			if removed == nil && there {
				t.Errorf("%s: what was removed is there", order)
			}
			if held != nil && removed != nil && dead == "" {
				t.Errorf("%s: each was refused because of the other: %v, %v", order, held, removed)
			}
			if there {
				after(t, table, order, holders)
			}
		}
	}
	o.run()
	if o.tried < 300 {
		t.Errorf("only %d orders were tried", o.tried)
	}
	t.Logf("%d orders", o.tried)
}

// after holds and removes what is there: stale records block no
// process.
func after(t *testing.T, table store.HeldTable[thing], order string, holders []nf.Holder) {
	t.Helper()
	if err := table.Hold(t.Context(), "x", inA("another")); err != nil {
		t.Errorf("%s: the next hold: %v", order, err)
	}
	for _, holder := range append(holders, inA("another")) {
		if err := table.Release(t.Context(), "x", holder); err != nil {
			t.Error(err)
		}
	}
	if _, err := table.Remove(t.Context(), "x"); err != nil {
		t.Errorf("%s: the next removal: %v", order, err)
	}
}

// TestHoldersIn checks which holders a reader of some scopes gets, and that the
// others cost it one record of each scope, however many they are.
func TestHoldersIn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		thing  string
		in     func(nf.SubjectKind, nf.Scope) bool
		want   []nf.Holder
		reads  int
	}{
		"Every":    {"all of one thing", "east", every, []nf.Holder{network("n"), inA("1"), inA("2"), inB("1")}, 4},
		"Things":   {"all of the table", "", every, []nf.Holder{network("n"), inA("1"), inA("2"), inB("1"), inA("3")}, 5},
		"First":    {"others follow", "east", only("a"), []nf.Holder{inA("1"), inA("2")}, 4},
		"Last":     {"others precede", "east", only("b"), []nf.Holder{inB("1")}, 3},
		"Another":  {"things without a holder in the scope", "", only("b"), []nf.Holder{inB("1")}, 4},
		"None":     {"a scope without a holder", "", only("c"), nil, 4},
		"NotThere": {"a thing without a holder", "eas", every, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, hidden := range []int{0, 100} {
				kv := &storetest.Counting{KV: memory.New()}
				holds := store.NewHolds(kv, "things/")
				of := map[string][]nf.Holder{"east": {inA("1"), inA("2"), inB("1"), network("n")}, "west": {inA("3")}}
				for i := range hidden {
					of["east"] = append(of["east"], nf.Holder{Subject: instance(strconv.Itoa(i)), Scope: nf.Scope{Project: "hidden", Region: "east"}})
				}
				for thing, holders := range of {
					for _, holder := range holders {
						if err := holds.Add(t.Context(), thing, holder); err != nil {
							t.Fatal(err)
						}
					}
				}
				kv.Entries = 0
				got := holdersOf(t, holds, tc.thing, func(kind nf.SubjectKind, s nf.Scope) bool { return s.Project != "hidden" && tc.in(kind, s) })
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: with %d hidden holders (-want +got):\n%s", tc.reason, hidden, diff)
				}
				want := tc.reads
				if hidden > 0 && tc.thing != "eas" {
					want++
				}
				if kv.Entries != want {
					t.Errorf("%s: with %d hidden holders it reads %d holds, want %d", tc.reason, hidden, kv.Entries, want)
				}
			}
		})
	}
}

// only selects the instances of a project.
func only(project string) func(nf.SubjectKind, nf.Scope) bool {
	return func(kind nf.SubjectKind, s nf.Scope) bool { return kind == nf.InstanceSubject && s.Project == project }
}

// TestAbandonedHolds checks that the sweep for one kind finds the holds of that
// kind on every table, and leaves those of other kinds.
func TestAbandonedHolds(t *testing.T) {
	t.Parallel()
	all := []string{
		"holds/rooms/east/a/network/x", "holds/rooms/east/a/vnf_instance/x", "holds/rooms/east/a/vnf_instance/y",
		"holds/things/east/network/x", "holds/things/east/vnf_instance/x", "holds/things/east/vnf_instance/y",
	}
	for name, tc := range map[string]struct {
		reason string
		kind   nf.SubjectKind
		alive  []string
		drops  []string
	}{
		"Alive":    {"holders that exist keep their holds", nf.InstanceSubject, []string{"x", "y"}, nil},
		"Dead":     {"the other kind's holder has the same id", nf.InstanceSubject, []string{"y"}, []string{all[1], all[4]}},
		"Network":  {"a second kind sweeps its own", "network", []string{"y"}, []string{all[0], all[3]}},
		"LikeKind": {"a kind is the whole word", "net", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, kv := t.Context(), memory.New()
			for _, holder := range []nf.Holder{{Subject: instance("x")}, {Subject: instance("y")}, network("x")} {
				for prefix, thing := range map[string]string{"things/": "east", "rooms/": "east/a"} {
					if err := store.NewHolds(kv, prefix).Add(ctx, thing, holder); err != nil {
						t.Fatal(err)
					}
				}
			}
			found, held, err := store.AbandonedHolds(ctx, kv, tc.kind, func(h store.Hold) bool { return slices.Contains(tc.alive, h.Holder.Subject.ID) }, func(ctx context.Context, _ store.Hold, drop store.Op) error {
				_, err := store.Write(ctx, kv, []store.Op{drop})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(store.Held{"rooms/east/a": true, "things/east": true}, held); diff != "" {
				t.Errorf("%s: the things that have a holder (-want +got):\n%s", tc.reason, diff)
			}
			for _, drop := range found {
				if err := errors.Join(drop(ctx), drop(ctx)); err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
			}
			want := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return slices.Contains(tc.drops, key) })
			var got []string
			for entry, err := range kv.List(ctx, "", "") {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, entry.Key)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
