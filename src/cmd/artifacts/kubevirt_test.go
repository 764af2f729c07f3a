package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestConstants(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "generated.go")
	source := "package components\n\nvar CRDsValidation map[string]string = map[string]string{\n\t\"vm\": `openAPIV3Schema:\n  type: object\n`,\n\t\"vmi\": `x`,\n}\n"
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := constants(name)
	if err != nil {
		t.Fatal(err)
	}
	if got["vm"] != "openAPIV3Schema:\n  type: object\n" || got["vmi"] != "x" || len(got) != 2 {
		t.Errorf("got %q", got)
	}
	if _, err := constants(name + ".none"); err == nil {
		t.Error("a file that is not there has constants")
	}
}
