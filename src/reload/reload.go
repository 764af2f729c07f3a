package reload

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

// Config configures a value. What and Load are required.
type Config[T any] struct {
	What string // name of the value, such as "the access rules"

	// Load returns the value. It reads all of its files with read, even if one of
	// them fails, so that a change of any is noticed.
	Load func(read func(name string) ([]byte, error)) (T, error)

	Clock  func() time.Time // default time.Now
	Logger *slog.Logger     // default: discard
}

// Value is a value that is loaded from files and reloaded when one of them changes. It
// checks the files when the value is requested, at most once a second. If a new version
// is invalid, the previous value stays active. Value is safe for concurrent use.
type Value[T any] struct {
	cfg Config[T]

	value  atomic.Pointer[T]
	looked atomic.Int64 // time of the last check in Unix nanoseconds
	seen   atomic.Pointer[contents]
	broken atomic.Int64 // number of invalid versions
}

// contents holds the hash of each file at the last read, by name.
type contents map[string][sha256.Size]byte

const (
	lookEvery = time.Second
	maxFile   = 1 << 20 // maximum bytes of a file
)

// New returns a value, or the error of the first load.
func New[T any](cfg Config[T]) (*Value[T], error) {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Value[T]{cfg: cfg}
	w.looked.Store(cfg.Clock().UnixNano())
	value, seen, err := w.read()
	if err != nil {
		return nil, err
	}
	w.value.Store(&value)
	w.seen.Store(&seen)
	return w, nil
}

// Current returns the value, after a check of the files if one is due.
func (w *Value[T]) Current(ctx context.Context) T {
	now, last := w.cfg.Clock().UnixNano(), w.looked.Load()
	// One caller checks; concurrent callers use the present value.
	if now-last >= int64(lookEvery) && w.looked.CompareAndSwap(last, now) {
		w.reload(ctx)
	}
	return *w.value.Load()
}

// Loaded returns the value without a check of the files.
func (w *Value[T]) Loaded() T { return *w.value.Load() }

// Broken returns the number of new versions that were invalid.
func (w *Value[T]) Broken() int64 { return w.broken.Load() }

func (w *Value[T]) reload(ctx context.Context) {
	if w.seen.Load().same() {
		return
	}
	value, seen, err := w.read()
	w.seen.Store(&seen) // also of an invalid version, so that it is logged only once
	if err != nil {
		w.broken.Add(1)
		w.cfg.Logger.ErrorContext(ctx, "failed to load a new version; the previous version stays active", "what", w.cfg.What, "error", err)
		return
	}
	w.value.Store(&value)
	w.cfg.Logger.InfoContext(ctx, "new version activated", "what", w.cfg.What)
}

// read loads the value, and returns the hashes of the files that it read.
func (w *Value[T]) read() (T, contents, error) {
	seen := contents{}
	value, err := w.cfg.Load(func(name string) ([]byte, error) {
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

// readWhole reads a file. It fails if the file is empty or larger
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
