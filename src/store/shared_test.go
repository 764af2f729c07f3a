package store_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

type room struct {
	Name     string `json:"name"`
	Removing string `json:"removing,omitempty"`
}

// ID implements store.Shared.
func (r room) ID() string { return r.Name }

func rooms(kv store.KV) store.SharedTable[room] {
	return store.NewSharedTable(kv, "rooms/", "room", func(r *room) *string { return &r.Removing })
}

// house contains the rooms that a SharedTable manages.
type house struct {
	mu     sync.Mutex
	there  bool
	inside map[string]bool // users that may be in the room
	broken string
}

func (h *house) enter(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.there, h.inside[user] = true, true
}

func (h *house) leave(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.inside, user)
}

// remove takes the room away, which must be empty.
func (h *house) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for user := range h.inside {
		h.broken = "the room was removed under " + user
	}
	h.there = false
}

// visit enters the room, until it may, and leaves it. Both are repeated by
// another process when the first one died.
type visitor struct {
	user  string
	table store.SharedTable[room]
	house *house
	pass  func() error
}

func (v visitor) enter(ctx context.Context) error {
	const tries = 3 // the process that removes the room may have crashed
	var err error
	for range tries {
		if _, err = v.table.Enter(ctx, instance(v.user), room{Name: "x"}); err == nil {
			v.house.enter(v.user)
			return nil
		}
		if nf.KindOf(err) != nf.Busy {
			return err
		}
	}
	return err
}

func (v visitor) leave(ctx context.Context) error {
	v.house.leave(v.user)
	return v.table.Leave(ctx, "x", instance(v.user), func(context.Context) error {
		if err := v.pass(); err != nil {
			return err
		}
		v.house.remove()
		return nil
	})
}

// TestShared tries orders, and deaths, of users that enter and leave at once:
// the room is there while one of them is in it, and gone when none is.
func TestShared(t *testing.T) {
	cases := map[string]struct {
		reason  string
		entered []string            // before
		do      map[string][]string // what each does: enter, leave
		random  int                 // orders for each death; 0: all of them
	}{
		"two leave":           {"the last one removes it, also when there is no last one", []string{"a", "b"}, map[string][]string{"a": {"leave"}, "b": {"leave"}}, 0},
		"one leaves":          {"as another enters", []string{"a"}, map[string][]string{"a": {"leave"}, "b": {"enter"}}, 100},
		"one is quick":        {"and leaves again", []string{"a"}, map[string][]string{"a": {"leave"}, "b": {"enter", "leave"}}, 100},
		"two enter":           {"and make it once", nil, map[string][]string{"a": {"enter"}, "b": {"enter"}}, 0},
		"two enter and leave": {"at once", nil, map[string][]string{"a": {"enter", "leave"}, "b": {"enter", "leave"}}, 100},
		"three":               {"at once", []string{"a", "b"}, map[string][]string{"a": {"leave"}, "b": {"leave"}, "c": {"enter", "leave"}}, 100},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, user := range []string{"a", "b", "c"} {
				if tc.do[user] != nil {
					names = append(names, user)
				}
			}
			o := orders{t: t, names: names, random: tc.random}
			o.start = func(t *testing.T, steps chan<- step) (map[string]func(), func(*testing.T, string, string)) {
				kv, h := memory.New(), &house{inside: map[string]bool{}}
				for _, user := range tc.entered {
					v := visitor{user, rooms(kv), h, func() error { return nil }}
					if err := v.enter(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				processes, done := map[string]func(){}, map[string]*int{"": new(int)}
				for _, user := range names {
					done[user] = new(int)
				}
				play := func(ctx context.Context, v visitor) error {
					for *done[v.user] < len(tc.do[v.user]) {
						act := v.enter
						if tc.do[v.user][*done[v.user]] == "leave" {
							act = v.leave
						}
						if err := act(ctx); err != nil {
							return err
						}
						*done[v.user]++
					}
					return nil
				}
				for _, user := range names {
					v := visitor{user, rooms(stepped(kv, user, steps)), h, func() error { return pass(user, steps) }}
					processes[user] = func() { _ = play(t.Context(), v) } // it may die, or give up for now
				}
				return processes, func(t *testing.T, order, dead string) {
					// Another process continues in the place of the crashed one; then the
					// others have no process to wait for.
					for _, user := range append([]string{dead}, names...) {
						if err := play(t.Context(), visitor{user, rooms(kv), h, func() error { return nil }}); err != nil {
							t.Errorf("%s: %s goes on: %v", order, user, err)
						}
					}
					used := false
					for _, user := range []string{"a", "b", "c"} {
						last := len(tc.do[user]) - 1
						used = used || last >= 0 && tc.do[user][last] == "enter"
					}
					if h.broken != "" || h.there != used {
						t.Errorf("%s:%s: %s; it is there: %t, want %t", tc.reason, order, h.broken, h.there, used)
					}
					if _, err := rooms(kv).Records().Get(t.Context(), "x"); (err == nil) != used {
						t.Errorf("%s:%s: its record: %v", tc.reason, order, err)
					}
				}
			}
			o.run()
			t.Logf("%d orders", o.tried)
		})
	}
}

// TestBusyNamesNoUser checks that the error for an object that is being removed
// does not name the user that removes it: another user may not know its id.
func TestBusyNamesNoUser(t *testing.T) {
	t.Parallel()
	table := rooms(memory.New())
	if err := table.Records().Put(t.Context(), "x", room{Name: "x", Removing: instance("vnf-b").String()}); err != nil {
		t.Fatal(err)
	}
	_, err := table.Enter(t.Context(), instance("vnf-a"), room{Name: "x"})
	if nf.KindOf(err) != nf.Busy || strings.Contains(err.Error(), "vnf-b") {
		t.Errorf("the error is %v, want Busy without the id vnf-b", err)
	}
}

// TestAbandoned checks the sweep of a kind: a record with a user of another kind,
// or whose removal another kind's user has begun, is not abandoned.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		holder   nf.Subject // without a kind: none
		removing string
		busy     bool
		record   bool   // it stays
		mark     string // its mark, if it stays
	}{
		"Unused":         {reason: "it has no user"},
		"Busy":           {reason: "an operation is about to enter it", busy: true, record: true},
		"Used":           {reason: "a user of another kind has it", holder: network("a").Subject, record: true},
		"Removed":        {reason: "its last user died", removing: "vnf_instance/dead"},
		"Removing":       {reason: "its last user removes it", removing: "vnf_instance/a", record: true, mark: "vnf_instance/a"},
		"OtherRemoving":  {reason: "the user that removes it is of another kind", removing: "network/dead", record: true, mark: "network/dead"},
		"RemovedAndUsed": {reason: "the user that removed it died, and another one wants it", holder: network("a").Subject, removing: "vnf_instance/dead", record: true},
		"Sweep":          {reason: "a sweep died", removing: "vnf_instance"},
		"SweepAndUsed":   {reason: "a sweep died, and a user wants it", holder: network("a").Subject, removing: "vnf_instance", record: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, kv := t.Context(), memory.New()
			table := rooms(kv)
			if tc.holder.Kind != "" {
				if _, err := table.Enter(ctx, tc.holder, room{Name: "x"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := table.Records().Put(ctx, "x", room{Name: "x", Removing: tc.removing}); err != nil {
				t.Fatal(err)
			}
			alive := map[string]bool{"a": true}
			_, held, err := store.AbandonedHolds(ctx, kv, nf.InstanceSubject, func(h store.Hold) bool { return alive[h.Holder.Subject.ID] }, nil)
			if err != nil {
				t.Fatal(err)
			}
			found, err := table.Abandoned(ctx, nf.InstanceSubject, held, alive, map[string]bool{"x": tc.busy})
			if err != nil {
				t.Fatal(err)
			}
			for what, remove := range found {
				if err := remove(ctx); err != nil {
					t.Errorf("%s: %s: %v", tc.reason, what, err)
				}
			}
			got, err := table.Records().Get(ctx, "x")
			if (err == nil) != tc.record || got.Removing != tc.mark {
				t.Errorf("%s: its record is %+v, %v", tc.reason, got, err)
			}
		})
	}
}
