package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// processorTime returns the time that a process has used, of all processors.
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("cannot read the processor time: %w", err)
	}
	// The name of the program may contain spaces; it ends with the last parenthesis.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system, ticks = 11, 12, 100 // proc(5); the unit is 1/100 s
	ofUser, err := strconv.Atoi(fields[user])
	ofSystem, err2 := strconv.Atoi(fields[system])
	if err = errors.Join(err, err2); err != nil {
		return 0, fmt.Errorf("cannot read the processor time: %w", err)
	}
	return time.Duration(ofUser+ofSystem) * time.Second / ticks, nil
}

// memory is the memory of a process in bytes.
type memory struct {
	resident, anonymous, heap int
	largest                   int // resident, since the start or the last reset
}

// memory returns the resident memory of the service, the part of it that is not
// mapped from files, and the heap in use.
func (s *service) memory(ctx context.Context) (memory, error) {
	var m memory
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return m, fmt.Errorf("cannot read the memory of the service: %w", err)
	}
	var metrics []byte
	if err := s.send(ctx, http.MethodGet, "/metrics", content{}, &metrics); err != nil {
		return m, err
	}
	m.resident, m.anonymous = 1024*number(status, "VmRSS:"), 1024*number(status, "RssAnon:")
	m.largest = 1024 * number(status, "VmHWM:")
	m.heap = number(metrics, "go_memstats_heap_inuse_bytes ")
	return m, nil
}

// number returns the number after a name at the start of a line, or 0.
func number(text []byte, name string) int {
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return int(n)
		}
	}
	return 0
}

// storeBytes returns the size of the files of the store.
func (s *service) storeBytes() (database, all int64, err error) {
	err = filepath.WalkDir(filepath.Join(s.data, "db"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // a segment of the log that was deleted
			return nil
		}
		if err != nil {
			return err
		}
		if all += file.Size(); filepath.Base(path) == "db" {
			database = file.Size()
		}
		return nil
	})
	return database, all, err
}

// machine describes the machine, with its load before the benchmark.
func machine() string {
	busy, _ := os.ReadFile("/proc/loadavg") // absent outside Linux
	load, _, _ := strings.Cut(string(busy), " ")
	return fmt.Sprintf("%s, %d cores, load average %s before the start", runtime.Version(), runtime.NumCPU(), load)
}
