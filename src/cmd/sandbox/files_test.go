package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, func() { t.Error("a free lock was waited for") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	errWaited := errors.New("it waits")
	if _, err := lock(ctx, path, func() { cancel(errWaited) }); !errors.Is(err, errWaited) {
		t.Errorf("a held lock gives %v, want the end of waiting", err)
	}
	unlock()
	again, err := lock(t.Context(), path, func() { t.Error("a lock that was given back was waited for") })
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "2nd"} {
		if err := writeFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("read %q, %v; want %q", got, err, content)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files in the folder, %v; want 1", len(left), err)
	}
	if err := writeFile(filepath.Join(path, "below"), nil, 0o600); err == nil {
		t.Error("a file was written below a file")
	}
}

func TestReadAllWantsFiles(t *testing.T) {
	if _, err := readAll(filepath.Join(t.TempDir(), "*.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v; a sandbox without stages would start and play nothing", err)
	}
}

func TestUntilTellsTheCause(t *testing.T) {
	errCause := errors.New("somebody said so")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCause)
	if err := pollUntil(ctx, func() (bool, error) { return false, nil }); !errors.Is(err, errCause) {
		t.Errorf("got %v, want the cause", err)
	}
}
