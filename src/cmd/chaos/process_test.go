package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// raise returns a process that is not started yet, and who died unasked.
func raise(t *testing.T, script string) (*process, func() []string) {
	t.Helper()
	ctx, done := context.WithCancel(context.Background())
	n := newProcessStarter()
	var group errgroup.Group
	group.Go(func() error { return n.run(ctx) })
	var mu sync.Mutex
	var dead []string
	p := &process{name: "sh", path: "/bin/sh", args: []string{"-c", script}, log: filepath.Join(t.TempDir(), "log"), starter: n}
	p.died = func(name string, _ *os.ProcessState) {
		mu.Lock()
		defer mu.Unlock()
		dead = append(dead, name)
	}
	t.Cleanup(func() {
		p.kill()
		done()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	return p, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return dead
	}
}

func TestProcessIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	p, dead := raise(t, "echo up; exec sleep 600")
	for range 3 {
		if err := p.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !p.running() {
			t.Error("a process that was started runs")
		}
		p.stall()
		if p.running() {
			t.Error("a stalled process does not run")
		}
		p.kill() // a stalled one, too
		if p.running() || p.lost() {
			t.Error("a process that was killed is gone, and not lost")
		}
	}
	if len(dead()) > 0 {
		t.Errorf("%q are said to have died unasked", dead())
	}
}

func TestProcessIsAskedToEnd(t *testing.T) {
	t.Parallel()
	p, _ := raise(t, `trap "echo bye; exit" TERM; echo up; while :; do sleep 0.05; done`)
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, p, "up")
	p.stall() // one that is stalled hears nothing, and is woken up for it
	p.end(time.Minute)
	await(t, p, "bye")
}

func TestProcessIsKilledWhenItDoesNotEnd(t *testing.T) {
	t.Parallel()
	p, _ := raise(t, `trap "" TERM; echo up; while :; do sleep 0.05; done`)
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, p, "up")
	p.end(50 * time.Millisecond)
	if p.running() {
		t.Error("it still runs")
	}
}

func TestProcessDiesUnasked(t *testing.T) {
	t.Parallel()
	p, dead := raise(t, "exit 3")
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	gone := p.gone
	p.mu.Unlock()
	<-gone
	if len(dead()) != 1 || !p.lost() {
		t.Errorf("%q died unasked, lost: %t; want the one that did", dead(), p.lost())
	}
}

// await waits until the process has said a word.
func await(t *testing.T, p *process, word string) {
	t.Helper()
	for {
		if log, err := os.ReadFile(p.log); err == nil && strings.Contains(string(log), word) {
			return
		}
		if pause(t.Context(), 10*time.Millisecond) != nil {
			t.Fatalf("it never said %q", word)
		}
	}
}
