package etcd

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// watermarkFile is the name of the watermark in the data folder. It is not one of
// etcd's files, so it shows that some of those are missing.
const watermarkFile = "WATERMARK"

// mark is the content of a watermark: the least that the data folder must contain.
type mark struct {
	index uint64 // of the last log entry that was acknowledged to a caller
	sum   string // checksum of the database file; empty unless the server was closed
}

// watermark is the open watermark file. It has one line, which is written in place:
//
//	00000000000000001234 5f3a91c2 0d4c71a8
//
// The fields are the index, the checksum of the database file or "--------", and
// the checksum of the first two fields. The index is not synced. The log entries
// are synced before the index is raised, so after a power failure the index is too
// low at worst.
type watermark struct {
	file *os.File

	mu    sync.Mutex // held while the file is written: a microsecond
	index uint64
}

const noSum = "--------"

// readMark returns the watermark of a data folder. It returns the zero mark if the
// file is missing or damaged.
func readMark(dir string) (mark, error) {
	text, err := os.ReadFile(filepath.Join(dir, watermarkFile))
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	var m mark
	if _, err := fmt.Sscanf(string(text), "%d %s", &m.index, &m.sum); err != nil || m.line() != strings.TrimSpace(string(text)) {
		return mark{}, nil //nolint:nilerr // without the watermark the other files are still checked
	}
	if m.sum == noSum {
		m.sum = ""
	}
	return m, nil
}

// line returns the text form of a mark.
func (m mark) line() string {
	if m.sum == "" {
		m.sum = noSum
	}
	line := fmt.Sprintf("%020d %s", m.index, m.sum)
	return fmt.Sprintf("%s %08x", line, checksum(line))
}

// openWatermark opens the watermark and removes the checksum from it, durably: the
// database file is about to change.
func openWatermark(dir string, m mark) (*watermark, error) {
	f, err := os.OpenFile(filepath.Join(dir, watermarkFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &watermark{file: f}
	err = w.write(mark{index: m.index})
	if err == nil {
		err = f.Truncate(int64(len(m.line()) + 1)) // removes trailing garbage
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// raise records that an entry is acknowledged. When raise returns, the index
// survives the end of the process, but not a power failure.
func (w *watermark) raise(index uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if index <= w.index {
		return nil
	}
	return w.write(mark{index: index})
}

func (w *watermark) write(m mark) error {
	if _, err := w.file.WriteAt([]byte(m.line()+"\n"), 0); err != nil {
		return err
	}
	w.index = m.index
	return nil
}

// close records the final state of the folder and closes the file.
func (w *watermark) close(m mark) error {
	err := w.write(m)
	if err == nil {
		err = w.file.Sync()
	}
	return errors.Join(err, w.file.Close())
}

// sumFile returns the checksum of a file's content.
func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	sum := crc32.New(castagnoli)
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%08x", sum.Sum32()), nil
}
