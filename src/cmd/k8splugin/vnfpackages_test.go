package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCSARAuthorities(t *testing.T) {
	t.Parallel()
	garbage := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(garbage, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason, file string
		wrong        bool
	}{
		"None":    {"signatures are optional", "", false},
		"Absent":  {"a file that does not exist must not make them optional", garbage + ".absent", true},
		"Garbage": {"nor a file without a certificate", garbage, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if roots, err := (Config{CSARAuthorities: tc.file}).csarAuthorities(); roots != nil || (err != nil) != tc.wrong {
				t.Errorf("%s: %v, %v", tc.reason, roots, err)
			}
		})
	}
}
