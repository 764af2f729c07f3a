package operation_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestPlaces checks who gets the places of a replica.
func TestPlaces(t *testing.T) {
	bubble(t, func(t *testing.T, g *group) {
		one := g.join(t, places(4)).run(t)
		for _, id := range []string{"e-1", "e-2", "e-3", "e-4"} {
			one.accept(t, id, "east")
		}
		one.accept(t, "w-1", "west")
		if diff := cmp.Diff([]string{"e-1", "e-2", "e-3", "w-1"}, one.performed()); diff != "" {
			t.Errorf("one region does not get the last quarter of the places (-want +got):\n%s", diff)
		}
		one.finish("w-1")
		pass(t, lease) // e-4 was left to any replica
		if diff := cmp.Diff([]string{"e-1", "e-2", "e-3", "w-1"}, one.performed()); diff != "" {
			t.Errorf("also when it alone has work (-want +got):\n%s", diff)
		}
		one.finish("e-1")
		synctest.Wait()
		if diff := cmp.Diff([]string{"e-1", "e-2", "e-3", "w-1", "e-4"}, one.performed()); diff != "" {
			t.Errorf("a free place is taken at once (-want +got):\n%s", diff)
		}
	})
}

// TestOrderOfPlaces has a place become free while the replica cannot read the list of
// work. An operation that is accepted then does not overtake one that waits.
func TestOrderOfPlaces(t *testing.T) {
	cases := map[string]func(c *cut, away bool){
		"before it is read": (*cut).set,
		"while it is read":  (*cut).setLists,
	}
	for name, cut := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, g *group) {
				one := g.join(t, places(1)).run(t)
				one.accept(t, "op-1", "east")
				one.accept(t, "op-2", "east")
				cut(one.cut, true)
				one.finish("op-1")
				cut(one.cut, false)
				one.accept(t, "op-3", "east")
				if diff := cmp.Diff([]string{"op-1", "op-2"}, one.performed()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				one.finish("op-2")
				if diff := cmp.Diff([]string{"op-1", "op-2", "op-3"}, one.performed()); diff != "" {
					t.Errorf("each place is taken at once (-want +got):\n%s", diff)
				}
				one.finish("op-3")
			})
		})
	}
}
