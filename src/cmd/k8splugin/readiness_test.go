package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadinessRules(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, content, want string }{
		"Rules":   {"rules are compiled", "- {group: a.io, kind: K, current: object.x}", ""},
		"Fault":   {"a fault is reported with its line", "\n- {group: a.io, kind: K, current: x}", "cannot use the readiness rules: FILE:2: rules[0].current: undeclared reference to 'x' (in container '')"},
		"Missing": {"the file must exist", "", "cannot read the readiness rules: open FILE: no such file or directory"},
	} {
		file := filepath.Join(t.TempDir(), "rules.yaml")
		if tc.content != "" {
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		if _, err := (Config{ReadinessRules: file}).readinessRules(); err != nil {
			got = strings.ReplaceAll(err.Error(), file, "FILE")
		}
		if got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
	if rules, err := (Config{}).readinessRules(); rules == nil || err != nil {
		t.Errorf("without a file, there are the shipped rules: %v", err)
	}
}
