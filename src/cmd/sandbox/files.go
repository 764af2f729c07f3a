package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// pollInterval is the interval for polling a condition.
const pollInterval = 50 * time.Millisecond

// writeFile writes a file atomically.
func writeFile(path string, content []byte, mode os.FileMode) error {
	partial, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	_, err = partial.Write(content)
	err = errors.Join(err, partial.Chmod(mode), partial.Close())
	if err == nil {
		err = os.Rename(partial.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, errors.Join(err, os.Remove(partial.Name())))
	}
	return nil
}

// readAll reads the files that match a pattern, ordered by name. It fails if no
// file matches.
func readAll(pattern string) ([][]byte, error) {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("cannot find %s: %w", pattern, errors.Join(err, os.ErrNotExist))
	}
	slices.Sort(names)
	contents := make([][]byte, len(names))
	for i, name := range names {
		if contents[i], err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
	}
	return contents, nil
}

// joinDocuments joins documents to one YAML stream.
func joinDocuments(documents [][]byte) []byte { return bytes.Join(documents, []byte("\n---\n")) }

// lock acquires a file lock. If another process holds it, lock calls waiting
// once and waits. The kernel releases the lock when the process ends.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock %s: %w", path, err)
	}
	told := false
	err = pollUntil(ctx, func() (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err == nil, err
		}
		if !told {
			told = true
			waiting()
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, errors.Join(err, file.Close()))
	}
	return func() { _ = file.Close() }, nil
}

// pollUntil polls until ask returns true or an error. If the context ends first, it
// returns the context's cause.
func pollUntil(ctx context.Context, ask func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
