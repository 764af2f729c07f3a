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

// patience is how long a component may take to end after SIGTERM.
const patience = 10 * time.Second

// process is a started program. The pid alone does not identify it, because the
// system reuses pids.
type process struct {
	name    string
	pid     int
	started uint64 // in the kernel's clock ticks after boot
}

// spawn starts a program in a new session, so that the terminal's signals do
// not reach it, and writes its output to a log. If tied, it is killed when the
// thread that called spawn ends. A child that ends stays a zombie until stop
// collects it.
func spawn(name, logDir string, tied bool, path string, args ...string) (process, error) {
	attr := syscall.SysProcAttr{Setsid: true}
	if tied {
		dieWithParent(&attr, syscall.SIGKILL)
	}
	return spawnAs(&attr, name, logDir, path, args...)
}

// spawnAs is spawn with other attributes of the process.
func spawnAs(attr *syscall.SysProcAttr, name, logDir, path string, args ...string) (process, error) {
	log, err := os.Create(filepath.Join(logDir, name+".log"))
	if err != nil {
		return process{}, fmt.Errorf("cannot make the log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := exec.Command(path, args...) //nolint:noctx // it outlives the call; stop ends it
	cmd.Dir = logDir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attr
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

// alive reports whether the process still runs.
func (p process) alive() bool {
	started, zombie, err := procStat(p.pid)
	return err == nil && !zombie && started == p.started
}

// killTime is how long a killed process may take to end.
const killTime = 10 * time.Second

// stop terminates the process, and kills it if it does not end within the
// patience. It returns when the process has ended. It does nothing if the
// process does not run or its pid belongs to another one.
func (p process) stop(ctx context.Context, patience time.Duration) error {
	defer p.collect()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if signal == syscall.SIGKILL {
			patience = max(patience, killTime)
		}
		if !p.alive() {
			return nil
		}
		if err := syscall.Kill(p.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("cannot stop %s (pid %d): %w", p.name, p.pid, err)
		}
		deadline, cancel := context.WithTimeout(ctx, patience)
		err := pollUntil(deadline, func() (bool, error) { return !p.alive(), nil })
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s (pid %d) does not end", p.name, p.pid)
}

// collect reaps a child that has ended. It has no effect on another process's
// child.
func (p process) collect() { _, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil) }

// stopAll stops processes, the last started first.
func stopAll(ctx context.Context, processes []process) error {
	var failures []error
	for _, p := range slices.Backward(processes) {
		failures = append(failures, p.stop(ctx, patience))
	}
	return errors.Join(failures...)
}

// writeProcesses records processes, one per line.
func writeProcesses(path string, processes []process) error {
	var b bytes.Buffer
	for _, p := range processes {
		fmt.Fprintln(&b, p.name, p.pid, p.started)
	}
	return writeFile(path, b.Bytes(), 0o600)
}

// readProcesses reads the recorded processes. A missing record means none.
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

// parseStat returns a process's start time and whether it is a zombie, from the
// kernel's stat line. The second field, the program's name in parentheses, may
// contain any characters.
func parseStat(line string) (started uint64, zombie bool, err error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	const state, starttime = 0, 19 // third and 22nd field of the line
	if end < 0 || len(fields) <= starttime {
		return 0, false, fmt.Errorf("cannot read the process state %q", line)
	}
	started, err = strconv.ParseUint(fields[starttime], 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("cannot read the process state %q: %w", line, err)
	}
	return started, fields[state] == "Z" || fields[state] == "X", nil
}
