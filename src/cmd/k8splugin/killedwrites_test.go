package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/store"
)

// killAtWrites names a file. The process that has it in its environment kills itself with
// SIGKILL before and after the first write of each kind. The file lists the kinds for which
// this was done.
const killAtWrites = "K8SPLUGIN_TEST_KILL_AT_WRITES"

// killedAtWrites returns the decorator of a store that kills the process, or nil.
func killedAtWrites() func(store.KV) store.KV {
	file := os.Getenv(killAtWrites)
	if file == "" {
		return nil
	}
	return func(kv store.KV) store.KV { return &deadly{KV: kv, file: file} }
}

// deadly kills the process at writes to a store.
type deadly struct {
	store.KV

	file string
	mu   sync.Mutex // held by the write that kills the process
}

// at kills the process if it was not yet killed at a moment.
func (d *deadly) at(moment string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	done, err := os.ReadFile(d.file)
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	if slices.Contains(strings.Split(string(done), "\n"), moment) {
		return
	}
	if err := os.WriteFile(d.file, append(done, moment+"\n"...), 0o600); err != nil {
		panic(err)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// Put implements store.KV.
func (d *deadly) Put(ctx context.Context, key string, value []byte, expected store.Revision) (revision store.Revision, err error) {
	d.around([]store.Op{{Key: key, Value: value, Expect: expected}}, func() error {
		revision, err = d.KV.Put(ctx, key, value, expected)
		return err
	})
	return revision, err
}

// Delete implements store.KV.
func (d *deadly) Delete(ctx context.Context, key string, expected store.Revision) (err error) {
	d.around([]store.Op{{Key: key, Expect: expected}}, func() error {
		err = d.KV.Delete(ctx, key, expected)
		return err
	})
	return err
}

// Write implements store.Writer.
func (d *deadly) Write(ctx context.Context, ops []store.Op) (revisions []store.Revision, err error) {
	d.around(ops, func() error {
		revisions, err = store.Carry(ctx, d.KV, ops)
		return err
	})
	return revisions, err
}

// around executes a write. A write that fails has changed nothing.
func (d *deadly) around(ops []store.Op, write func() error) {
	kind := kindOf(ops)
	if kind != "" {
		d.at("before " + kind)
	}
	if write() == nil && kind != "" {
		d.at("after " + kind)
	}
}

// kindOf returns the tables that ops write, and what they do there, without repetition. It
// is empty for leases, which are written all the time.
func kindOf(ops []store.Op) string {
	var out []string
	for _, op := range ops {
		if op.Check || slices.ContainsFunc(leases(), func(prefix string) bool { return strings.HasPrefix(op.Key, prefix) }) {
			continue
		}
		verb := "update"
		switch {
		case op.Value == nil:
			verb = "delete"
		case op.Expect == store.Absent:
			verb = "create"
		}
		table, _, _ := strings.Cut(op.Key, "/")
		if one := verb + " " + table; !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// restarting is the service as a process on one port and one data folder, which is started
// again whenever it was killed.
type restarting struct {
	url string

	mu      sync.Mutex
	process *os.Process   // the last one
	ended   chan struct{} // closed when it has ended
}

// kill kills the process with SIGKILL, and waits for its end. It is started again.
func (s *restarting) kill() {
	s.mu.Lock()
	process, ended := s.process, s.ended
	s.mu.Unlock()
	_ = process.Kill() // it may have ended
	<-ended
}

// run runs a process until it ends.
func (s *restarting) run(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	s.mu.Lock()
	s.process, s.ended = cmd.Process, ended
	s.mu.Unlock()
	return cmd.Wait()
}

// serveAgain runs the service, and starts it again whenever it was killed, until the test
// ends. It calls restarts before.
func serveAgain(t *testing.T, restarts func(), args []string, env ...string) *restarting {
	t.Helper()
	// On this address, no connection and no server of another test takes the port while the
	// service is down.
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"serve", "--listen", address, "--data", filepath.Join(t.TempDir(), "data"), "--lease-duration", "1s"}, args...)
	ctx, stop := context.WithCancel(context.Background())
	s := &restarting{url: "http://" + address}
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, program, args...)
			cmd.Env = append(os.Environ(), append(env, actAsProgram+"=1")...)
			cmd.Stderr = t.Output()
			if err := s.run(cmd); !killed(err) && ctx.Err() == nil {
				t.Errorf("the service ended by itself: %v", err)
				return
			}
			restarts()
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return s
}

// killed reports whether SIGKILL ended a process.
func killed(err error) bool {
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := ended.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}
