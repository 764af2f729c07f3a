//go:build !race

package schema

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The tests of this file try every case, one after another. With the race detector they take
// many times as long, and it sees the same code in other tests.

// TestNativeMutations compares the checks of Kubernetes' own kinds with a real
// API server: whatever is refused here is refused there.
func TestNativeMutations(t *testing.T) {
	s := newServer(t)
	region := NewCache(Config{}).Region(s)
	var all []mutation
	for _, u := range natural(t) {
		if got := s.check(region, u); len(got.Violations)+len(got.Unchecked) > 0 {
			t.Errorf("%s %s: found %v, not checked %v", u.GetKind(), u.GetName(), got.Violations, got.Unchecked)
		}
		if err := s.dryRun(u); err != nil {
			t.Errorf("%s %s: the API server refuses it: %v", u.GetKind(), u.GetName(), err)
		}
		all = append(all, mutate(u)...)
	}
	got := s.compare(region, all, s.judge(all))
	got.report(t, "a mutation")
	if got.passed == 0 || got.both == 0 {
		t.Errorf("the mutations prove nothing: %d pass, %d are refused", got.passed, got.both)
	}
}

// TestCustomMutations compares the checks of a custom resource with a real API
// server: with the schema that the server publishes, and with the definition
// that comes with the object.
func TestCustomMutations(t *testing.T) {
	s := newServer(t)
	definition, gadget := own(t)
	s.define(definition)
	all := append(mutate(gadget), mutation{"nowhere", "nothing", gadget})
	verdicts := s.judge(all)
	cases := map[string]struct {
		reason string
		beside []*unstructured.Unstructured
	}{
		"published": {"the server's document states the schema", nil},
		"beside":    {"the definition beside the object states it", []*unstructured.Unstructured{definition}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := s.compare(NewCache(Config{}).Region(s), all, verdicts, tc.beside...)
			got.report(t, tc.reason)
			for _, place := range slices.Sorted(maps.Keys(got.unseen)) {
				if !slices.ContainsFunc(unseenOfCustom, func(p string) bool { return strings.HasPrefix(place, "Gadget [spec "+p) }) {
					t.Errorf("%s: only the API server refuses %s: %s", tc.reason, place, got.examples[place])
				}
			}
			if got.passed == 0 || got.both == 0 {
				t.Errorf("%s: the mutations prove nothing: %d pass, %d are refused", tc.reason, got.passed, got.both)
			}
		})
	}
}

// unseenOfCustom are the places where an API server refuses what the checks let
// pass.
var unseenOfCustom = []string{
	"most",   // the range of int32, which old servers do not check
	"ratio",  // an integer is never a multiple of a fraction, for the server
	"strict", // names and labels of objects within objects
	"whole",
}
