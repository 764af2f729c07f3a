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

// pollInterval is how often a condition is looked at that nothing announces.
const pollInterval = 50 * time.Millisecond

// writeFile writes a file so that a reader finds the old content or the new.
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

// readAll reads the files that match a pattern, in the order of their names. A
// pattern that matches nothing is an error.
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

// joinDocuments makes one YAML stream of several.
func joinDocuments(documents [][]byte) []byte { return bytes.Join(documents, []byte("\n---\n")) }

// lock takes the lock that a file stands for, waiting for whoever holds it;
// waiting is called once when there is somebody. The kernel gives the lock back
// when the process dies.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock %s: %w", path, err)
	}
	told := false
	err = until(ctx, func() (bool, error) {
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

// until asks again and again until the answer is yes or an error; when the
// context ends first, its cause is the error.
func until(ctx context.Context, ask func() (bool, error)) error {
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
