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

// process is one run of a program, with all that it starts.
type process struct {
	program string
	args    []string
	dir     string
	pipe    string // that the variables come through
	env     []string
}

const (
	graceTime = 3 * time.Second // between asking the run to end and ending it
	maxSaid   = 4 << 10         // bytes kept of what the program says when it gives up
)

// run starts the program, gives it the variables, and hands each line of its
// output to tell, until that says false. It returns when the program and all
// that it has started have ended: why it did not succeed, or an error when it
// could not be run. When the context ends first, so does the run.
func (p process) run(ctx context.Context, vars []byte, tell func(line string) bool) (end, err error) {
	cmd := exec.Command(p.program, p.args...) //nolint:noctx // its whole process group ends with the context, below
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said := &tail{}
	cmd.Stderr = said
	cmd.WaitDelay = graceTime // for a grandchild that left the group and kept the output
	leash, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot run the playbook: %w", err)
	}
	defer func() { _ = leash.Close() }() // Wait has closed it, or nothing was started
	out, into, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot run the playbook: %w", err)
	}
	defer func() { _ = out.Close() }() // it was only read
	cmd.Stdout = into
	err = cmd.Start()
	_ = into.Close() // the program has its own
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
		// Whoever still holds the other end has left the group: it is not waited for.
		_ = out.SetReadDeadline(time.Now().Add(graceTime))
	})
	for line := range site.Lines(out) {
		if !tell(line) {
			group.end()
			break
		}
	}
	_, _ = io.Copy(io.Discard, out) // nobody may be kept waiting
	chores.Wait()
	return end, nil
}

// explain joins how a program ended with what it said.
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

// end asks the group to end, and sees to it.
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

// sweep ends what is left of the group.
func (g *group) sweep() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

// feed gives the variables to whoever opens the pipe, or to nobody when the
// program ends first.
func feed(path string, vars []byte, ended <-chan struct{}) {
	// Opening a pipe that nobody reads would wait for a reader, and for ever when
	// none comes.
	for {
		pipe, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			_, _ = pipe.Write(vars) // it ends when the reader goes away
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

// tail keeps the end of what is written to it.
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
