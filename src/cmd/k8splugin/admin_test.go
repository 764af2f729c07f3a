package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestVerifyEmpty checks the report of an audit file that continues no other.
func TestVerifyEmpty(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	cmd := verifyCommand(process{stdout: &stdout})
	cmd.SetArgs([]string{"/dev/null"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if want := "0 entries, 0 torn lines; from the beginning of the log to"; !strings.HasPrefix(stdout.String(), want) {
		t.Errorf("got %q, want %q", stdout.String(), want)
	}
}
