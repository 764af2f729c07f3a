//go:build !race

package store_test

import (
	"context"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// The test of this file tries tens of thousands of orders, one after another. With the race
// detector it takes many times as long, and the detector sees the same code in other tests.

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
