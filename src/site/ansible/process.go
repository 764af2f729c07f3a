package ansible

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/site"
)

// process is one run of a program, including the processes that it starts.
type process struct {
	program string
	args    []string
	dir     string
	pipe    string // for the variables
	env     []string
}

const (
	graceTime = 3 * time.Second // between SIGTERM and SIGKILL
	maxSaid   = 4 << 10         // bytes kept of the program's error output
)

// run starts the program, writes the variables to its pipe, and passes each
// line of its output to tell, until tell returns false. It returns after the
// program and all processes in its group have ended. End is why the program did
// not succeed; err is why it could not be run. If the context ends first, run
// stops the group.
func (p process) run(ctx context.Context, vars []byte, tell func(line string) bool) (end, err error) {
	cmd := exec.Command(p.program, p.args...) //nolint:noctx // its whole process group ends with the context, below
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said := &tail{}
	cmd.Stderr = said
	cmd.WaitDelay = graceTime // for a grandchild that left the group and kept the output open
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot run the playbook: %w", err)
	}
	defer func() { _ = stdin.Close() }() // Wait has closed it, or nothing was started
	out, into, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot run the playbook: %w", err)
	}
	defer func() { _ = out.Close() }() // it was only read
	cmd.Stdout = into
	err = cmd.Start()
	_ = into.Close() // the program has its own copy
	if err != nil {
		return nil, fmt.Errorf("cannot run the playbook: %w", err)
	}
	group := &group{id: cmd.Process.Pid, ended: make(chan struct{})}
	var chores sync.WaitGroup
	defer chores.Wait()
	forget := context.AfterFunc(ctx, group.end)
	defer forget()
	chores.Go(func() { feed(p.pipe, vars, group.ended) })
	chores.Go(func() {
		end = explain(cmd.Wait(), said)
		group.sweep()
		close(group.ended)
		// A process that still holds the other end has left the group. Do not wait
		// for it.
		_ = out.SetReadDeadline(time.Now().Add(graceTime))
	})
	for line := range site.Lines(out) {
		if !tell(line) {
			group.end()
			break
		}
	}
	_, _ = io.Copy(io.Discard, out) // no writer may block
	chores.Wait()
	return end, nil
}

// explain returns how a program ended, with its error output.
func explain(end error, said *tail) error {
	if end == nil || errors.Is(end, exec.ErrWaitDelay) {
		return nil
	}
	if text := strings.TrimSpace(said.String()); text != "" {
		return fmt.Errorf("ansible-playbook: %w: %s", end, text)
	}
	return fmt.Errorf("ansible-playbook: %w", end)
}

// group is a process group.
type group struct {
	id    int
	ended chan struct{} // closed when its leader has ended
	once  sync.Once
}

// end stops the group: SIGTERM first, SIGKILL after graceTime.
func (g *group) end() {
	g.once.Do(func() {
		_ = syscall.Kill(-g.id, syscall.SIGTERM) // it may have ended
		timer := time.NewTimer(graceTime)
		defer timer.Stop()
		select {
		case <-g.ended:
		case <-timer.C:
			g.sweep()
		}
	})
}

// sweep kills what remains of the group.
func (g *group) sweep() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

// feed writes the variables to the pipe once it is opened for reading. It gives
// up when the program ends first.
func feed(path string, vars []byte, ended <-chan struct{}) {
	// A blocking open would wait for a reader, possibly forever.
	for {
		pipe, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			_, _ = pipe.Write(vars) // it ends when the reader closes the pipe
			_ = pipe.Close()
			return
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-ended:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// tail keeps the last maxSaid bytes written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxSaid; over > 0 {
		t.text = bytes.Clone(t.text[over:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
