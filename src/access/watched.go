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

// watched is a value that is made from files, and made anew when one of them
// has changed. It looks at them when it is asked for, at most once a second;
// what cannot be used leaves the former value in force.
type watched[T any] struct {
	what string // the value is: "the access rules"
	load func(read func(name string) ([]byte, error)) (T, error)
	now  func() time.Time
	log  *slog.Logger

	value  atomic.Pointer[T]
	looked atomic.Int64 // when the files were looked at last, in nanoseconds
	seen   atomic.Pointer[contents]
	broken atomic.Int64 // versions that could not be used
}

// contents is what files held when they were read last, by name.
type contents map[string][sha256.Size]byte

const lookEvery = time.Second

// watch returns a watched value, or the error of loading it for the first time.
func watch[T any](w *watched[T]) (*watched[T], error) {
	w.looked.Store(w.now().UnixNano())
	value, seen, err := w.read()
	if err != nil {
		return nil, err
	}
	w.value.Store(&value)
	w.seen.Store(&seen)
	return w, nil
}

// current returns the value of the present files.
func (w *watched[T]) current(ctx context.Context) T {
	now, last := w.now().UnixNano(), w.looked.Load()
	// Whoever wins looks; the others take what there is.
	if now-last >= int64(lookEvery) && w.looked.CompareAndSwap(last, now) {
		w.look(ctx)
	}
	return *w.value.Load()
}

func (w *watched[T]) look(ctx context.Context) {
	if w.seen.Load().same() {
		return
	}
	value, seen, err := w.read()
	w.seen.Store(&seen) // of a broken version, too: it is told of once
	if err != nil {
		w.broken.Add(1)
		w.log.ErrorContext(ctx, "a new version cannot be used, so the former one stays in force", "what", w.what, "error", err)
		return
	}
	w.value.Store(&value)
	w.log.InfoContext(ctx, "a new version is in force", "what", w.what)
}

// read loads the value, and remembers what it was made from.
func (w *watched[T]) read() (T, contents, error) {
	seen := contents{}
	value, err := w.load(func(name string) ([]byte, error) {
		content, err := readWhole(name)
		seen[name] = digest(content, err)
		return content, err
	})
	return value, seen, err
}

// same reports whether every file still holds what it held. Files are read
// again rather than asked for their times: two changes can have the same.
func (c *contents) same() bool {
	for name, was := range *c {
		content, err := readWhole(name)
		if digest(content, err) != was {
			return false
		}
	}
	return true
}

// digest tells contents apart, and a file that cannot be read from every other.
func digest(content []byte, err error) [sha256.Size]byte {
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(content)
}

// readWhole reads a file of the configuration.
func readWhole(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > maxFile:
		return nil, nf.E(nf.TooLarge, "read", name, fmt.Errorf("it is larger than %d bytes", maxFile))
	case len(content) == 0:
		return nil, errors.New(name + " is empty") // as a file is that is just being written
	}
	return content, nil
}
