package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

type thing struct {
	Name     string `json:"name"`
	Removing string `json:"removing,omitempty"`
}

func things(kv store.KV) store.HeldTable[thing] {
	return store.NewHeldTable(kv, "things/", "thing", func(v *thing) *string { return &v.Removing })
}

func instance(id string) nf.Subject { return nf.Subject{Kind: nf.InstanceSubject, ID: id} }

func network(id string) nf.Subject { return nf.Subject{Kind: "network", ID: id} }

func holdersOf(t *testing.T, h store.Holds, of string) []nf.Subject {
	t.Helper()
	var out []nf.Subject
	for holder, err := range h.Holders(t.Context(), of) {
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
	for _, holder := range []nf.Subject{instance("b"), instance("a"), network("a"), instance("b")} {
		if err := table.Hold(ctx, "east", holder); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Hold(ctx, "nowhere", instance("a")); nf.KindOf(err) != nf.NotFound {
		t.Errorf("what does not exist cannot be held: %v", err)
	}
	if diff := cmp.Diff([]nf.Subject{network("a"), instance("a"), instance("b")}, holdersOf(t, table.Holds(), "east")); diff != "" {
		t.Errorf("each holder holds once, and nothing of another name (-want +got):\n%s", diff)
	}
	if got := append(holdersOf(t, table.Holds(), "nowhere"), holdersOf(t, table.Holds(), "east-2")...); got != nil {
		t.Errorf("nobody holds the others, and %v do", got)
	}
	if _, err := table.Remove(ctx, "east"); nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != nf.ReasonHeld {
		t.Errorf("what is held is not removed: %v", err)
	}
	if v, err := table.Get(ctx, "east"); err != nil || v.Removing != "" {
		t.Errorf("a refused removal leaves no mark: %+v, %v", v, err)
	}
	for _, holder := range []nf.Subject{instance("a"), instance("b"), instance("b"), instance("c")} {
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
			"hold":   func() { held = things(stepped(kv, "hold", steps)).Hold(t.Context(), "x", instance("user")) },
			"remove": func() { _, removed = things(stepped(kv, "remove", steps)).Remove(t.Context(), "x") },
		}
		return processes, func(t *testing.T, order, dead string) {
			_, err := table.Get(t.Context(), "x")
			there := err == nil
			holders := holdersOf(t, table.Holds(), "x")
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
func after(t *testing.T, table store.HeldTable[thing], order string, holders []nf.Subject) {
	t.Helper()
	if err := table.Hold(t.Context(), "x", instance("another")); err != nil {
		t.Errorf("%s: the next hold: %v", order, err)
	}
	for _, holder := range append(holders, instance("another")) {
		if err := table.Release(t.Context(), "x", holder); err != nil {
			t.Error(err)
		}
	}
	if _, err := table.Remove(t.Context(), "x"); err != nil {
		t.Errorf("%s: the next removal: %v", order, err)
	}
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
			for _, holder := range []nf.Subject{instance("x"), instance("y"), network("x")} {
				for prefix, thing := range map[string]string{"things/": "east", "rooms/": "east/a"} {
					if err := store.NewHolds(kv, prefix).Add(ctx, thing, holder); err != nil {
						t.Fatal(err)
					}
				}
			}
			alive := map[string]bool{}
			for _, id := range tc.alive {
				alive[id] = true
			}
			found, held, err := store.AbandonedHolds(ctx, kv, tc.kind, alive)
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
