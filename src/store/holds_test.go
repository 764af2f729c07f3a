package store_test

import (
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

func usersOf(t *testing.T, h store.Holds, of string) []string {
	t.Helper()
	var out []string
	for user, err := range h.Users(t.Context(), of) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, user)
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
	for _, user := range []string{"b", "a", "b"} {
		if err := table.Hold(ctx, "east", user); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Hold(ctx, "nowhere", "a"); nf.KindOf(err) != nf.NotFound {
		t.Errorf("what does not exist cannot be held: %v", err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, usersOf(t, table.Holds(), "east")); diff != "" {
		t.Errorf("each user holds once, and nothing of another name (-want +got):\n%s", diff)
	}
	if got := append(usersOf(t, table.Holds(), "nowhere"), usersOf(t, table.Holds(), "east-2")...); got != nil {
		t.Errorf("nobody holds the others, and %v do", got)
	}
	if _, err := table.Remove(ctx, "east"); nf.KindOf(err) != nf.Conflict || nf.ReasonOf(err) != nf.ReasonHeld {
		t.Errorf("what is held is not removed: %v", err)
	}
	if v, err := table.Get(ctx, "east"); err != nil || v.Removing != "" {
		t.Errorf("a refused removal leaves no mark: %+v, %v", v, err)
	}
	for _, user := range []string{"a", "b", "b", "c"} {
		if err := table.Release(ctx, "east", user); err != nil {
			t.Errorf("to release twice is to release once: %v", err)
		}
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
			"hold":   func() { held = things(stepped(kv, "hold", steps)).Hold(t.Context(), "x", "user") },
			"remove": func() { _, removed = things(stepped(kv, "remove", steps)).Remove(t.Context(), "x") },
		}
		return processes, func(t *testing.T, order, dead string) {
			_, err := table.Get(t.Context(), "x")
			there := err == nil
			users := usersOf(t, table.Holds(), "x")
			if held == nil && (!there || len(users) != 1) {
				t.Errorf("%s: what is held is gone", order)
			}
			if removed == nil && there {
				t.Errorf("%s: what was removed is there", order)
			}
			if held != nil && removed != nil && dead == "" {
				t.Errorf("%s: each was refused because of the other: %v, %v", order, held, removed)
			}
			if there {
				after(t, table, order, users)
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
func after(t *testing.T, table store.HeldTable[thing], order string, users []string) {
	t.Helper()
	if err := table.Hold(t.Context(), "x", "another"); err != nil {
		t.Errorf("%s: the next hold: %v", order, err)
	}
	for _, user := range append(users, "another") {
		if err := table.Release(t.Context(), "x", user); err != nil {
			t.Error(err)
		}
	}
	if _, err := table.Remove(t.Context(), "x"); err != nil {
		t.Errorf("%s: the next removal: %v", order, err)
	}
}
