package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// file is an append-only file of entries, one per line. Concurrent entries are
// written and synced as one batch: the first caller writes for all.
type file struct {
	name string

	mu      sync.Mutex
	busy    bool    // a caller is writing
	waiting []*line // entries for the next batch
	last    string  // hash of the last line on disk

	f    *os.File // owned by the writing caller; nil after a failure
	prev string   // owned by the writing caller: the hash that the next line will contain
}

// line is an entry that waits to be written.
type line struct {
	entry  nf.AuditEntry
	called chan bool // true: this caller writes the next batch; false: the entry has been written
	err    error
}

// begin opens the file for the first time.
func (f *file) begin() error {
	err := f.open()
	f.last = f.prev
	return err
}

// append writes an entry, and returns the hash of the line before it. It
// returns when the entry is on disk.
func (f *file) append(e nf.AuditEntry) (prev string, err error) {
	l := &line{entry: e, called: make(chan bool, 1)}
	f.mu.Lock()
	f.waiting = append(f.waiting, l)
	if f.busy {
		f.mu.Unlock()
		if mine := <-l.called; !mine {
			return l.entry.Prev, l.err
		}
		f.mu.Lock()
	}
	f.busy = true
	batch := f.waiting
	f.waiting = nil
	f.mu.Unlock()

	f.write(batch) // without the lock: busy keeps other callers from writing

	f.mu.Lock()
	f.last = f.prev
	if f.busy = len(f.waiting) > 0; f.busy {
		f.waiting[0].called <- true
	}
	f.mu.Unlock()
	for _, other := range batch {
		if other != l {
			other.called <- false
		}
	}
	return l.entry.Prev, l.err
}

// write writes and syncs lines. If that fails, the content on disk is unknown.
// The file is then reopened, and its last line read, before the next write.
func (f *file) write(batch []*line) {
	err := f.follow()
	var out bytes.Buffer
	prev := f.prev
	for _, l := range batch {
		l.entry.Prev = prev
		text, failed := json.Marshal(l.entry)
		if failed != nil {
			err = errors.Join(err, failed)
			break
		}
		out.Write(append(text, '\n'))
		prev = hashOf(text)
	}
	if err == nil {
		_, err = f.f.Write(out.Bytes())
	}
	if err == nil {
		err = f.f.Sync()
	}
	if err == nil {
		f.prev = prev
	} else if f.f != nil {
		_ = f.f.Close() // the write error is returned
		f.f = nil
	}
	for _, l := range batch {
		l.err = err
	}
}

// follow opens the file if it has been renamed away or failed.
func (f *file) follow() error {
	if f.f == nil {
		return f.open()
	}
	there, err := os.Stat(f.name)
	if err == nil {
		var ours os.FileInfo
		if ours, err = f.f.Stat(); err == nil && os.SameFile(there, ours) {
			return nil
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	old := f.f
	f.f = nil
	return errors.Join(old.Close(), f.open())
}

// open opens the file, and continues after its last line. A new file continues
// the one before it.
func (f *file) open() error {
	opened, err := os.OpenFile(f.name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	last, err := lastLine(opened)
	if err == nil && last.torn {
		// A process was killed here. Its incomplete line stays, as a separate line.
		_, err = opened.WriteString("\n")
	}
	if err == nil {
		err = syncFolder(filepath.Dir(f.name))
	}
	if err != nil {
		_ = opened.Close() // as above
		return err
	}
	f.f = opened
	if last.hash != "" {
		f.prev = last.hash
	}
	return nil
}

// syncFolder makes the creation of a file durable.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// ending is how a file ends.
type ending struct {
	hash string // of the last line; empty: the file is empty
	torn bool   // the last line has no newline
}

const maxLine = 1 << 20

func lastLine(f *os.File) (ending, error) {
	info, err := f.Stat()
	if err != nil {
		return ending{}, err
	}
	tail := make([]byte, min(info.Size(), maxLine))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return ending{}, err
	}
	if len(tail) == 0 {
		return ending{}, nil
	}
	text, whole := bytes.CutSuffix(tail, []byte("\n"))
	begin := bytes.LastIndexByte(text, '\n') + 1
	if begin == 0 && int64(len(tail)) < info.Size() {
		return ending{}, fmt.Errorf("its last line is longer than %d bytes; it is not an audit file", maxLine)
	}
	return ending{hash: hashOf(text[begin:]), torn: !whole}, nil
}

func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// head returns the hash of the last line on disk.
func (f *file) head() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// close closes the file. It must not be called during a write.
func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	return f.f.Close()
}
