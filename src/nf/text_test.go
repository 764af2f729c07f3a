package nf_test

import (
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestClip(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, text string
		most         int
		want         string
	}{
		"Short":  {"a text that fits stays as it is", "abc", 3, "abc"},
		"Long":   {"the rest is marked", "abcd", 3, "abc…"},
		"Inside": {"no character is cut in two", "aäb", 2, "a…"},
		"Empty":  {"nothing is left of it", "ä", 1, "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := nf.Clip(tc.text, tc.most); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
