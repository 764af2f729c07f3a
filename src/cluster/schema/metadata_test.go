package schema

import (
	"strings"
	"testing"
)

// TestNames compares the rules for names of all kinds with a real API server.
func TestNames(t *testing.T) {
	s := newServer(t)
	region := NewCache(Config{}).Region(s)
	names := []string{
		"a", "a-b", "1a", "a.b", "a..b", "-a", "a-", "A", "a_b", "a:b", "a b", "a/b", "a%b", ".", "..", "é", "",
		strings.Repeat("a", 52), strings.Repeat("a", 53), strings.Repeat("a", 63), strings.Repeat("a", 64),
		strings.Repeat("a", 253), strings.Repeat("a", 254), strings.Repeat("a.", 126) + "a", strings.Repeat("a", 64) + ".b",
	}
	for _, u := range natural(t) {
		t.Run(u.GetKind(), func(t *testing.T) {
			t.Parallel()
			if u.GetKind() == "CustomResourceDefinition" {
				return // its name follows from its plural and group
			}
			for _, name := range names {
				u := u.DeepCopy()
				u.SetName(name)
				ours, theirs := lines(s.check(region, u).Violations), s.dryRun(u)
				if (len(ours) > 0) != (theirs != nil) {
					t.Errorf("name %q: found %q, the API server says %v", name, ours, theirs)
				}
			}
		})
	}
}
