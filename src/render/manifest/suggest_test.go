package manifest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	cases := map[string]struct {
		reason, name string
		candidates   []string
		want         string
	}{
		"none":       {"there is nothing to choose from", "a", nil, ""},
		"missing":    {"a letter is missing", "databse", []string{"cache", "database"}, "database"},
		"added":      {"there is one too many", "replicass", []string{"replicas"}, "replicas"},
		"other":      {"one is another", "web.yoml", []string{"db.yaml", "web.yaml"}, "web.yaml"},
		"swapped":    {"two are swapped, which is one mistake", "iamge", []string{"image"}, "image"},
		"extension":  {"the short form of an extension", "web.yml", []string{"web.yaml", "metadata.yaml"}, "web.yaml"},
		"spelling":   {"case and separators do not count", "DB-Password", []string{"db_pass", "db_password"}, "db_password"},
		"closest":    {"the closest one is meant, not the first", "replicas3", []string{"replicas1", "replicas_3"}, "replicas_3"},
		"first":      {"of equally close ones the first is", "port3", []string{"port1", "port2"}, "port1"},
		"far":        {"what is far was not meant", "size", []string{"replicas", "sort"}, ""},
		"short":      {"short names differ by a letter on purpose", "a", []string{"b"}, ""},
		"itself":     {"a name is no misspelling of itself", "port", []string{"port"}, ""},
		"long":       {"a long text is no typing error", strings.Repeat("x", maxWord+1), []string{strings.Repeat("x", maxWord)}, ""},
		"long other": {"neither is it meant", strings.Repeat("x", maxWord), []string{strings.Repeat("x", maxWord+1)}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := nearest(tc.name, tc.candidates); got != tc.want {
				t.Errorf("%s: %q is taken for %q, want %q", tc.reason, tc.name, got, tc.want)
			}
		})
	}
}

// TestDistance compares with the definition, which takes exponential time.
func TestDistance(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		m, n := len(a)-1, len(b)-1
		cost := 1
		if a[m] == b[n] {
			cost = 0
		}
		d := min(slow(a[:m], b)+1, slow(a, b[:n])+1, slow(a[:m], b[:n])+cost)
		if m > 0 && n > 0 && a[m] == b[n-1] && a[m-1] == b[n] {
			d = min(d, slow(a[:m-1], b[:n-1])+1)
		}
		return d
	}
	text := rapid.StringMatching("[abc]{0,6}")
	rapid.Check(t, func(t *rapid.T) {
		a, b, most := text.Draw(t, "a"), text.Draw(t, "b"), rapid.IntRange(0, 7).Draw(t, "most")
		if got, want := distance(a, b, most), min(slow(a, b), most+1); got != want {
			t.Errorf("%q and %q are %d apart, want %d", a, b, got, want)
		}
	})
}
