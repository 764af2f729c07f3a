package nf_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// TestMerged merges sequences of letters, in which "!" is an error.
func TestMerged(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	of := func(items string) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for item := range strings.SplitSeq(items, "") {
				if item == "!" {
					yield("", wrong)
					return
				}
				if !yield(item, nil) {
					return
				}
			}
		}
	}
	cases := map[string]struct {
		reason string
		items  []string
		want   string
	}{
		"None":    {"no sequence", nil, ""},
		"One":     {"a sequence as it is", []string{"abc"}, "abc"},
		"Two":     {"the least item is first", []string{"adf", "bce"}, "abcdef"},
		"Uneven":  {"sequences of different lengths, one of them empty", []string{"c", "", "abdefg"}, "abcdefg"},
		"Equal":   {"equal items are all yielded", []string{"ab", "ab"}, "aabb"},
		"Error":   {"an error ends the sequence", []string{"ac!", "bd"}, "abc!"},
		"AtOnce":  {"an error is the first item", []string{"a", "!"}, "!"},
		"ErrorOf": {"of one sequence", []string{"a!"}, "a!"},
	}
	for name, tc := range cases {
		var sequences []iter.Seq2[string, error]
		for _, items := range tc.items {
			sequences = append(sequences, of(items))
		}
		for size := range len(tc.want) + 1 {
			got := ""
			for item, err := range nf.Merged(func(s string) string { return s }, sequences...) {
				if len(got) == size {
					break // leaving the loop ends it
				}
				if errors.Is(err, wrong) {
					item = "!"
				}
				got += item
			}
			if got != tc.want[:size] {
				t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want[:size])
			}
		}
	}
}
