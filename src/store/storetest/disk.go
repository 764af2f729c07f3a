package storetest

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Disk is a database that keeps the chunks of blobs in a file, so that the memory
// of a test does not grow with them.
type Disk struct {
	store.KV

	file *os.File
	seen func()

	mu  sync.Mutex
	end int64
}

var _ store.KV = (*Disk)(nil)

// OnDisk returns a Disk on top of the KV, in a folder of the test. Seen is called
// after each chunk that is read or written.
func OnDisk(t testing.TB, kv store.KV, seen func()) *Disk {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "chunks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &Disk{KV: kv, file: f, seen: seen}
}

func isChunk(key string) bool { return strings.HasPrefix(key, "chunks/") }

// Put implements store.KV. The KV below gets the place of a chunk as its value.
func (d *Disk) Put(ctx context.Context, key string, value []byte, expected store.Revision) (store.Revision, error) {
	if !isChunk(key) {
		return d.KV.Put(ctx, key, value, expected)
	}
	d.mu.Lock()
	at := d.end
	d.end += int64(len(value))
	d.mu.Unlock()
	if _, err := d.file.WriteAt(value, at); err != nil {
		return 0, fmt.Errorf("cannot write a chunk: %w", err)
	}
	revision, err := d.KV.Put(ctx, key, fmt.Appendf(nil, "%d %d", at, len(value)), expected)
	d.seen()
	return revision, err
}

// Get implements store.KV.
func (d *Disk) Get(ctx context.Context, key string) (store.Entry, error) {
	e, err := d.KV.Get(ctx, key)
	if err == nil && isChunk(key) {
		e, err = d.read(e)
		d.seen()
	}
	return e, err
}

func (d *Disk) read(e store.Entry) (store.Entry, error) {
	var at, size int64
	if _, err := fmt.Sscan(string(e.Value), &at, &size); err != nil {
		return e, fmt.Errorf("cannot find a chunk: %w", err)
	}
	e.Value = make([]byte, size)
	if _, err := d.file.ReadAt(e.Value, at); err != nil {
		return e, fmt.Errorf("cannot read a chunk: %w", err)
	}
	return e, nil
}

// List implements store.KV.
func (d *Disk) List(ctx context.Context, prefix, start string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range d.KV.List(ctx, prefix, start) {
			if err == nil && isChunk(e.Key) {
				e, err = d.read(e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
