package nf_test

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func TestTextsOfSecret(t *testing.T) {
	t.Parallel()
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	const lines, crooked = "first\n hunter2 \n", "hun\"ter\\2"
	want := []string{"hunter2", "hunter2 applied", encode("hunter2"), crooked, "first", lines}
	secret := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{nf.AppliedAnnotation: "hunter2 applied"}},
		"data":     map[string]any{"p": encode("hunter2"), "line": encode(lines), "q": encode(crooked), "short": encode("pin")},
	}
	cases := map[string]struct {
		reason string
		object map[string]any
	}{
		"Secret": {"a Secret", secret},
		"List":   {"a list of Secrets", map[string]any{"items": []any{secret}}},
		"Plain":  {"one that was not saved", map[string]any{"stringData": map[string]any{"a": "hunter2", "b": lines, "c": crooked, "d": encode("hunter2"), "e": "hunter2 applied"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := nf.TextsOfSecret(tc.object)
			for _, text := range want {
				if !slices.Contains(found, text) {
					t.Errorf("%s: %q is not among %q", tc.reason, text, found)
				}
			}
			if slices.Contains(found, "pin") {
				t.Errorf("%s: a text of three bytes would mask parts of words", tc.reason)
			}
		})
	}
}
