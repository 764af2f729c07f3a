package ansible_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dies is the message of the following test to the process that it starts.
const dies = "K8SPLUGIN_TEST_DIES"

// TestLeash: when the process that runs a playbook is killed, so that it can do
// nothing about it, the run ends all the same.
func TestLeash(t *testing.T) {
	t.Parallel()
	if os.Getenv(dies) != "" {
		w, j := real(t, "local", "waiting")
		fmt.Fprintln(os.Stdout, "folder "+w.temp)
		for e := range w.Run(t.Context(), j) { //nolint:errcheck // nothing comes after the end
			if e.Task == "Wait" {
				fmt.Fprintln(os.Stdout, "begun")
			}
		}
		return
	}
	needAnsible(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLeash$", "-test.v")
	cmd.Env = append(os.Environ(), dies+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	folder := ""
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "begun"; {
		if name, ok := strings.CutPrefix(lines.Text(), "folder "); ok {
			folder = name
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if len(runningIn(folder)) == 0 {
		t.Fatal("no run was begun: there is nothing to see")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(runningIn(folder)) > 0 {
		select {
		case <-deadline:
			t.Fatalf("the run goes on without the service: %q", runningIn(folder))
		case <-tick.C:
		}
	}
}

// TestSweep: what a run has left whose process was killed goes with the next one;
// what is in use stays.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standIn)
	forsaken := filepath.Join(w.temp, "k8splugin-site-1")
	if err := os.MkdirAll(filepath.Join(forsaken, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(forsaken, "kubeconfig"), []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e := range w.Run(ctx, w.job(t, "forever")) { //nolint:errcheck // it is cancelled
		if e.Message != "begun" {
			continue
		}
		if _, err := os.Stat(forsaken); err == nil {
			t.Error("what a killed run has left is still there")
		}
		if events, _, err := w.run(t.Context(), w.job(t, "good")); err != nil {
			t.Errorf("a second run: %v, after %v", err, events)
		}
		if left, err := os.ReadDir(w.temp); err != nil || len(left) != 1 {
			t.Errorf("the folder of the run that goes on is not alone: %v, %v", left, err)
		}
		cancel()
	}
	w.wantClean(t)
}

// runningIn returns the command lines that name a folder.
func runningIn(folder string) []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is sound
	for _, name := range all {
		if line, err := os.ReadFile(name); err == nil && folder != "" && bytes.Contains(line, []byte(folder)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}
