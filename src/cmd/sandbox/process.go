package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long a component may take to end when asked to.
const patience = 10 * time.Second

// process is a program that was started. A pid alone would not do to know it
// by: the system gives the pids of the dead to others.
type process struct {
	name    string
	pid     int
	started uint64 // when, in the kernel's clock ticks after boot
}

// spawn starts a program of its own session, out of reach of the terminal's
// signals, with its output in a log. A tied one is killed when the thread that
// called spawn ends. A dead child stays a zombie until stop collects it.
func spawn(name, logDir string, tied bool, path string, args ...string) (process, error) {
	log, err := os.Create(filepath.Join(logDir, name+".log"))
	if err != nil {
		return process{}, fmt.Errorf("cannot make the log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd := exec.Command(path, args...) //nolint:noctx // it outlives the call; stop ends it
	cmd.Dir = logDir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if tied {
		dieWithParent(cmd.SysProcAttr, syscall.SIGKILL)
	}
	if err := cmd.Start(); err != nil {
		return process{}, fmt.Errorf("cannot start %s: %w", name, err)
	}
	p := process{name: name, pid: cmd.Process.Pid}
	p.started, _, err = procStat(p.pid)
	if err != nil {
		return process{}, fmt.Errorf("cannot note when %s started: %w", name, errors.Join(err, cmd.Process.Kill()))
	}
	return p, nil
}

// alive tells whether the process still runs.
func (p process) alive() bool {
	started, zombie, err := procStat(p.pid)
	return err == nil && !zombie && started == p.started
}

// stop asks the process to end, kills it when it has not ended within the
// patience, and returns when it is gone. One that is not there, or whose pid is
// another's now, is left alone.
func (p process) stop(ctx context.Context, patience time.Duration) error {
	defer p.collect()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !p.alive() {
			return nil
		}
		if err := syscall.Kill(p.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("cannot stop %s (pid %d): %w", p.name, p.pid, err)
		}
		deadline, cancel := context.WithTimeout(ctx, patience)
		err := until(deadline, func() (bool, error) { return !p.alive(), nil })
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s (pid %d) does not end", p.name, p.pid)
}

// collect takes a dead child out of the system's table; another's child is left
// to its parent.
func (p process) collect() { _, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil) }

// stopAll stops processes, the last started first.
func stopAll(ctx context.Context, processes []process) error {
	var failures []error
	for _, p := range slices.Backward(processes) {
		failures = append(failures, p.stop(ctx, patience))
	}
	return errors.Join(failures...)
}

// writeProcesses records processes, one a line.
func writeProcesses(path string, processes []process) error {
	var b bytes.Buffer
	for _, p := range processes {
		fmt.Fprintln(&b, p.name, p.pid, p.started)
	}
	return writeFile(path, b.Bytes(), 0o600)
}

// readProcesses reads a record; none is no processes.
func readProcesses(path string) ([]process, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read which processes run: %w", err)
	}
	var processes []process
	for line := range strings.Lines(string(content)) {
		var p process
		if _, err := fmt.Sscanf(line, "%s %d %d\n", &p.name, &p.pid, &p.started); err != nil {
			return nil, fmt.Errorf("cannot read the line %q of %s: %w", line, path, err)
		}
		processes = append(processes, p)
	}
	return processes, nil
}

// parseStat reads a process's state and start time from the kernel's stat
// line. The second field, the program's name in brackets, may hold anything.
func parseStat(line string) (started uint64, zombie bool, err error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	const state, starttime = 0, 19 // the third and the 22nd field of the line
	if end < 0 || len(fields) <= starttime {
		return 0, false, fmt.Errorf("cannot read the process state %q", line)
	}
	started, err = strconv.ParseUint(fields[starttime], 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("cannot read the process state %q: %w", line, err)
	}
	return started, fields[state] == "Z" || fields[state] == "X", nil
}
