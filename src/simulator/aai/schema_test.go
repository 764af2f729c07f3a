package aai

import (
	"slices"
	"testing"
)

// TestTables checks the tables for mistakes that no request would show.
func TestTables(t *testing.T) {
	t.Parallel()
	s, err := loadSchema()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range s.objects {
		names := slices.Concat(o.Keys, o.Required, o.Flags, o.Strings, o.Booleans, o.Integers, o.Lists)
		if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("%s lists an attribute twice: %q", name, names)
		}
		for attribute := range o.Since {
			if !slices.Contains(names, attribute) {
				t.Errorf("%s has a version of %q, which it does not have", name, attribute)
			}
		}
		isChild := slices.ContainsFunc(s.rules, func(r *rule) bool { return r.Child && r.From == name })
		if len(o.Keys) == 0 || isChild == slices.Contains(s.roots, o) {
			t.Errorf("%s needs keys, and is either a root or a child", name)
		}
	}
	seen := make(map[[2]string]bool)
	for _, r := range s.rules {
		pair := [2]string{r.From, r.To}
		slices.Sort(pair[:])
		if seen[pair] {
			t.Errorf("there are two rules between %s and %s: none is the default", r.From, r.To)
		}
		seen[pair] = true
		if !slices.Contains([]string{manyToOne, oneToMany, manyToMany}, r.Multiplicity) || !slices.Contains([]string{"", "cascade", deletionBlocks}, r.Deletion) {
			t.Errorf("the rule between %s and %s has an unknown multiplicity or deletion", r.From, r.To)
		}
		if r.Child && r.Deletion == "" {
			t.Errorf("a %s needs a rule for the deletion of its %s", r.From, r.To)
		}
	}
}
