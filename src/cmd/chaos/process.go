package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// processStarter starts processes and waits for them. It starts all from one thread
// that lives as long as run. If this program is killed, the kernel
// therefore kills them too.
type processStarter struct {
	starts chan func()
	group  errgroup.Group // one goroutine for each running process
}

func newProcessStarter() *processStarter { return &processStarter{starts: make(chan func())} }

// run starts processes until the context ends. All must have ended by then.
func (n *processStarter) run(ctx context.Context) error {
	runtime.LockOSThread() // not unlocked, so that the thread ends with this goroutine
	for {
		select {
		case <-ctx.Done():
			return n.group.Wait()
		case start := <-n.starts:
			start()
		}
	}
}

// process is a program that can be started, stalled, killed and restarted.
type process struct {
	name    string
	path    string
	args    []string
	log     string // path of the file that its output is appended to
	starter *processStarter
	died    func(name string, state *os.ProcessState) // called when the process ends unexpectedly

	mu      sync.Mutex
	pid     int           // 0: not running
	gone    chan struct{} // closed when the process has ended
	doomed  bool          // its end was requested
	stopped bool          // by SIGSTOP
}

// start starts the process unless it runs.
func (p *process) start(ctx context.Context) error {
	result := make(chan error, 1)
	select {
	case p.starter.starts <- func() { result <- p.spawn() }:
		return <-result
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *process) spawn() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != 0 {
		return nil
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open the log of %s: %w", p.name, err)
	}
	defer func() { _ = log.Close() }()     // the process has its own descriptor
	cmd := exec.Command(p.path, p.args...) //nolint:noctx // it is ended by its pid, also after the context
	cmd.Dir = filepath.Dir(p.log)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", p.name, err)
	}
	gone := make(chan struct{})
	p.pid, p.gone, p.doomed, p.stopped = cmd.Process.Pid, gone, false, false
	p.starter.group.Go(func() error {
		_ = cmd.Wait() // the state has the result
		p.mu.Lock()
		unasked := !p.doomed
		p.pid = 0
		p.mu.Unlock()
		if unasked {
			p.died(p.name, cmd.ProcessState)
		}
		close(gone)
		return nil
	})
	return nil
}

// signal sends a signal to the process if it runs. It returns a channel that is
// closed when the process has ended.
func (p *process) signal(s syscall.Signal) (gone <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return closed()
	}
	p.doomed = p.doomed || s == syscall.SIGKILL || s == syscall.SIGTERM
	p.stopped = s == syscall.SIGSTOP || p.stopped && s != syscall.SIGCONT
	_ = syscall.Kill(p.pid, s) // a process that has just ended is noticed elsewhere
	return p.gone
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// kill kills the process and waits until it has ended.
func (p *process) kill() { <-p.signal(syscall.SIGKILL) }

// end asks the process to exit, and kills it after the given time.
func (p *process) end(patience time.Duration) {
	p.signal(syscall.SIGCONT)
	select {
	case <-p.signal(syscall.SIGTERM):
	case <-time.After(patience):
		p.kill()
	}
}

func (p *process) stall()  { p.signal(syscall.SIGSTOP) }
func (p *process) resume() { p.signal(syscall.SIGCONT) }

// running reports whether the process runs and is not stalled.
func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid != 0 && !p.stopped
}

// lost reports whether the process has ended unexpectedly.
func (p *process) lost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid == 0 && p.gone != nil && !p.doomed
}

// The ports of the processes are below the kernel's range for outgoing
// connections. A killed process's port is therefore still free at its restart.
const firstPort, lastPort = 18000, 31000

// freeAddresses returns n unused addresses on loopback, with ports from a given
// one on.
func freeAddresses(n, from int) ([]string, error) {
	var out []string
	for port := from; len(out) < n; port++ {
		if port > lastPort {
			return nil, errors.New("cannot find free ports")
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		out = append(out, address)
	}
	return out, nil
}
