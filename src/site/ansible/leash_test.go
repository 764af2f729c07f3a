package ansible_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dies is what the test that follows tells the process that it starts.
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
	if _, err := exec.LookPath("ansible-playbook"); err != nil {
		t.Skip("ansible-playbook is not installed")
	}
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
