package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestCommand(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		want   int
	}{
		"Success": {"what succeeds ends with 0", `true`, 0},
		"Code":    {"a failure keeps its code", `exit 7`, 7},
		"Killed":  {"a command that is killed ends as a shell would tell it", `kill -KILL $$`, 128 + 9},
		"Env":     {"the command is told where its sandbox is", `test "$` + envKubeconfig + `" = here`, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := command([]string{"/bin/sh", "-c", tc.script}, []string{envKubeconfig + "=here"}, nil)
			if err != nil || got != tc.want {
				t.Errorf("%s: got %d, %v; want %d", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestCommandMissing(t *testing.T) {
	if _, err := command([]string{"/no/such/command"}, nil, nil); err == nil {
		t.Error("a command that is not there was run")
	}
}

func TestCommandGetsSignals(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	signals := make(chan os.Signal)
	told := make(chan error, 1)
	go func() {
		told <- pollUntil(t.Context(), func() (bool, error) {
			_, err := os.Stat(ready)
			return err == nil, nil
		})
		signals <- syscall.SIGTERM
	}()
	script := `trap 'exit 5' TERM; : > "$0"; while :; do sleep 0.05; done`
	code, err := command([]string{"/bin/sh", "-c", script, ready}, nil, signals)
	if err != nil || code != 5 {
		t.Errorf("got %d, %v; want the trap's 5", code, err)
	}
	if err := <-told; err != nil {
		t.Fatal(err)
	}
}
