package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLinked(t *testing.T) {
	t.Parallel()
	files, err := linked("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := os.Stat(file.source); err != nil {
			t.Errorf("%s: %v", file.name, err)
		}
	}
	for reason, wanted := range map[string]string{"its loader": "ld-linux*", "the C library": "libc.so.*"} {
		if !slices.ContainsFunc(files, func(file imageFile) bool {
			ok, err := filepath.Match(wanted, filepath.Base(file.name))
			return err == nil && ok
		}) {
			t.Errorf("a shell needs %s; linked found %v", reason, files)
		}
	}
}

func TestLinkedNothing(t *testing.T) {
	t.Parallel()
	if _, err := linked("/nonexistent"); err == nil {
		t.Error("a program that is not there has no libraries")
	}
}
