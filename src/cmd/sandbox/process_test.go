package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSpawnAndStop(t *testing.T) {
	cases := map[string]struct {
		reason   string
		script   string
		patience time.Duration
	}{
		"Obedient":  {"a process that ends when asked to is not killed", `trap 'echo ended; exit' TERM; `, time.Hour},
		"Stubborn":  {"a process that does not end is killed", `trap '' TERM; `, 100 * time.Millisecond},
		"WithChild": {"a process is gone when it is a zombie that nobody collected", ``, time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p, err := spawn("program", dir, true, "/bin/sh", "-c", tc.script+`echo ready; while :; do sleep 0.05; done`)
			if err != nil {
				t.Fatal(err)
			}
			awaitLog(t, dir, "ready")
			if !p.alive() {
				t.Fatal("it is not alive after it spoke")
			}
			if err := p.stop(t.Context(), tc.patience); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if p.alive() {
				t.Errorf("%s: it is alive", tc.reason)
			}
			if strings.Contains(tc.script, "ended") {
				awaitLog(t, dir, "ended")
			}
			if err := p.stop(t.Context(), tc.patience); err != nil {
				t.Errorf("stopping what is gone: %v", err)
			}
		})
	}
}

func TestSpawnMissingProgram(t *testing.T) {
	if _, err := spawn("program", t.TempDir(), true, "/no/such/program"); err == nil {
		t.Error("a program that is not there was started")
	}
}

func TestRecycledPidIsNotStopped(t *testing.T) {
	own, _, err := procStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	stranger := process{name: "etcd", pid: os.Getpid(), started: own - 1}
	if stranger.alive() {
		t.Error("a process with our pid that started earlier is taken for us")
	}
	if err := stranger.stop(t.Context(), time.Hour); err != nil { // or this test ends here
		t.Error(err)
	}
	if !(process{pid: os.Getpid(), started: own}).alive() {
		t.Error("we are taken for dead")
	}
}

func TestProcessRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pids")
	if none, err := readProcesses(path); err != nil || len(none) > 0 {
		t.Errorf("without a record: %v, %v; want nothing", none, err)
	}
	want := []process{{"etcd", 7, 1 << 40}, {"kube-apiserver", 8, 12}}
	if err := writeProcesses(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := readProcesses(path)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
	if err := os.WriteFile(path, []byte("etcd seven 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readProcesses(path); err == nil {
		t.Error("a record that makes no sense was read: something would be left running")
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	cases := map[string]struct {
		reason  string
		line    string
		started uint64
		zombie  bool
		bad     bool
	}{
		"Running": {reason: "the 22nd field is the start", line: "5 (etcd) S" + rest, started: 4711},
		"Zombie":  {reason: "a dead child is dead", line: "5 (etcd) Z" + rest, started: 4711, zombie: true},
		"Name":    {reason: "a name may look like the rest of the line", line: "5 (a) Z 1 (b) R" + rest, started: 4711},
		"Short":   {reason: "a line without a start contains no information", line: "5 (etcd) S 1 2 3", bad: true},
		"NoName":  {reason: "a line without a name is none", line: "5 etcd S" + rest, bad: true},
		"NoTime":  {reason: "a start is a number", line: "5 (etcd) S" + strings.Replace(rest, "4711", "x", 1), bad: true},
		"Empty":   {reason: "nothing is no line", line: "", bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			started, zombie, err := parseStat(tc.line)
			if (err != nil) != tc.bad || started != tc.started || zombie != tc.zombie {
				t.Errorf("%s: got %d, %t, %v; want %d, %t, an error: %t",
					tc.reason, started, zombie, err, tc.started, tc.zombie, tc.bad)
			}
		})
	}
}

func awaitLog(t *testing.T, dir, word string) {
	t.Helper()
	err := pollUntil(t.Context(), func() (bool, error) {
		content, err := os.ReadFile(filepath.Join(dir, "program.log"))
		return strings.Contains(string(content), word), err
	})
	if err != nil {
		t.Fatal(err)
	}
}
