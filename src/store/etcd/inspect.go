package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// layout is the layout of a server's data folder.
type layout struct{ dir string }

func (l layout) member() string   { return filepath.Join(l.dir, "member") }
func (l layout) snap() string     { return filepath.Join(l.dir, "member", "snap") }
func (l layout) database() string { return filepath.Join(l.dir, "member", "snap", "db") }
func (l layout) log() string      { return filepath.Join(l.dir, "member", "wal") }

// logState is the index of the last entry of a write-ahead log, and of the last
// entry that the log records as committed.
type logState struct{ last, committed uint64 }

// inspect checks the files of a data folder before etcd opens them, and returns its
// watermark. With damaged files, etcd's goroutines would panic, wait forever, or
// continue with the remaining records. inspect changes nothing, except that it
// removes temporary files and an interrupted first start.
func (l layout) inspect() (m mark, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its files are damaged: %v", p)
		}
	}()
	if m, err = readMark(l.dir); err != nil {
		return m, err
	}
	if err := l.tidy(); err != nil {
		return m, err
	}
	var entries logState
	exists := wal.Exist(l.log())
	if exists {
		if entries, err = readLog(l.log()); err != nil {
			return m, fmt.Errorf("the write-ahead log in %s is damaged: %w", l.log(), err)
		}
	}
	unused := m.index == 0 && entries.committed == 0
	applied, err := l.inspectDatabase(m, unused)
	switch {
	case err == nil && applied == 0 && unused:
		// The first start was interrupted before it served a request. etcd would
		// wait forever: the log may lack the entry that adds the only member.
		return m, os.RemoveAll(l.member())
	case err != nil:
		return m, err
	case !exists:
		return m, fmt.Errorf("the write-ahead log in %s is missing", l.log())
	case entries.last < max(applied, m.index):
		return m, fmt.Errorf("the write-ahead log in %s is incomplete: it ends with entry %d, and entry %d was acknowledged", l.log(), entries.last, max(applied, m.index))
	}
	return m, nil
}

// tidy removes temporary files, and returns an error if anything else is not a
// regular file.
func (l layout) tidy() error {
	temporary := map[string]func(name string) bool{
		l.member(): func(name string) bool { return name == "wal.tmp" },
		l.log():    func(name string) bool { return strings.HasSuffix(name, ".tmp") },
		l.snap():   func(name string) bool { return strings.HasPrefix(name, "tmp") || strings.HasPrefix(name, "db.tmp") },
	}
	for dir, unneeded := range temporary {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if unneeded(e.Name()) {
				if err := os.RemoveAll(path); err != nil {
					return err
				}
			} else if dir != l.member() && !e.Type().IsRegular() {
				return fmt.Errorf("%s is not a regular file", path)
			}
		}
	}
	return nil
}

// readLog reads the log from the last snapshot on. It ignores a last entry that is
// incomplete, because such an entry was not acknowledged.
func readLog(dir string) (logState, error) {
	silent := zap.NewNop()
	snapshots, err := wal.ValidSnapshotEntries(silent, dir)
	if err != nil {
		return logState{}, err
	}
	from := &walpb.Snapshot{}
	if len(snapshots) > 0 {
		from = snapshots[len(snapshots)-1]
	}
	log, err := wal.OpenForRead(silent, dir, from)
	if err != nil {
		return logState{}, err
	}
	_, state, entries, err := log.ReadAll()
	if err != nil {
		return logState{}, err
	}
	return logState{last: from.GetIndex() + uint64(len(entries)), committed: state.GetCommit()}, nil
}

// inspectDatabase checks the database file and returns the index of the last entry
// applied to it. It returns 0 if the watermark has the checksum of the file, which
// then is not read further. In an unused folder the file may be missing or
// incomplete.
func (l layout) inspectDatabase(m mark, unused bool) (applied uint64, err error) {
	file, err := os.Open(l.database())
	if errors.Is(err, fs.ErrNotExist) && unused {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	stat, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if m.sum != "" {
		sum, err := sumFile(l.database())
		if err == nil && sum != m.sum {
			err = fmt.Errorf("the database file %s is damaged: its checksum differs from the one recorded when it was closed", l.database())
		}
		return 0, err
	}
	if unused && stat.Size() <= 4*int64(os.Getpagesize()) {
		return 0, nil // as created by bbolt
	}
	r := newRevisions(m.index > 0)
	err = walkTree(file, stat.Size(), func(bucket string, key, value []byte) error {
		switch {
		case bucket == "key":
			return r.add(key, value)
		case bucket == "meta" && string(key) == "consistent_index" && len(value) == 8:
			applied = binary.BigEndian.Uint64(value)
		case bucket == "meta" && slices.Contains(compactedKeys, string(key)) && len(value) == 17:
			r.compacted = max(r.compacted, binary.BigEndian.Uint64(value))
		}
		return nil
	})
	if err == nil {
		err = r.checkDeletions()
	}
	if err != nil {
		return 0, fmt.Errorf("the database file %s is damaged: %w", l.database(), err)
	}
	return applied, nil
}
