package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// reloadable is a value that is loaded from files and reloaded when one of them
// changes. It checks the files when the value is requested, at most once a
// second. If a new version is invalid, the previous value stays active.
type reloadable[T any] struct {
	what string // name of the value, such as "the access rules"
	load func(read func(name string) ([]byte, error)) (T, error)
	now  func() time.Time
	log  *slog.Logger

	value  atomic.Pointer[T]
	looked atomic.Int64 // time of the last check in Unix nanoseconds
	seen   atomic.Pointer[contents]
	broken atomic.Int64 // number of invalid versions
}

// contents holds the hash of each file at the last read, by name.
type contents map[string][sha256.Size]byte

const lookEvery = time.Second

// newReloadable returns a reloadable value, or the error of the first load.
func newReloadable[T any](w *reloadable[T]) (*reloadable[T], error) {
	w.looked.Store(w.now().UnixNano())
	value, seen, err := w.read()
	if err != nil {
		return nil, err
	}
	w.value.Store(&value)
	w.seen.Store(&seen)
	return w, nil
}

// current returns the value, after a check of the files if one is due.
func (w *reloadable[T]) current(ctx context.Context) T {
	now, last := w.now().UnixNano(), w.looked.Load()
	// One caller checks; concurrent callers use the present value.
	if now-last >= int64(lookEvery) && w.looked.CompareAndSwap(last, now) {
		w.reload(ctx)
	}
	return *w.value.Load()
}

func (w *reloadable[T]) reload(ctx context.Context) {
	if w.seen.Load().same() {
		return
	}
	value, seen, err := w.read()
	w.seen.Store(&seen) // also of an invalid version, so that it is logged only once
	if err != nil {
		w.broken.Add(1)
		w.log.ErrorContext(ctx, "failed to load a new version; the previous version stays active", "what", w.what, "error", err)
		return
	}
	w.value.Store(&value)
	w.log.InfoContext(ctx, "new version activated", "what", w.what)
}

// read loads the value, and returns the hashes of the files that it read.
func (w *reloadable[T]) read() (T, contents, error) {
	seen := contents{}
	value, err := w.load(func(name string) ([]byte, error) {
		content, err := readWhole(name)
		seen[name] = digest(content, err)
		return content, err
	})
	return value, seen, err
}

// same reports whether no file has changed. It compares content because two
// versions of a file can have the same modification time.
func (c *contents) same() bool {
	for name, was := range *c {
		content, err := readWhole(name)
		if digest(content, err) != was {
			return false
		}
	}
	return true
}

// digest returns the hash of a content, or zero for a file that cannot be read.
func digest(content []byte, err error) [sha256.Size]byte {
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(content)
}

// readWhole reads a configuration file. It fails if the file is empty or larger
// than maxFile.
func readWhole(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > maxFile:
		return nil, nf.E(nf.TooLarge, "read", name, fmt.Errorf("it is larger than %d bytes", maxFile))
	case len(content) == 0:
		return nil, errors.New(name + " is empty") // probably being written
	}
	return content, nil
}
