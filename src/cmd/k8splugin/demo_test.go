package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestDemo runs what `make run` runs, to the point where it serves, and a second
// time on the same folder, where everything is there already.
func TestDemo(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, run := range []struct {
		reason string
		want   []string // lines of the output, in order, without what differs from run to run
	}{
		{"a new user sees each command and the result", []string{
			"$ k8splugin region add sandbox", "$ k8splugin package push", "$ k8splugin instance create --region sandbox --package edgex --namespace edgex-a",
			"$ k8splugin instance create --region sandbox --package edgex --namespace edgex-b", "$ k8splugin instance tree edgex-a", "$ k8splugin instance list",
		}},
		{"what is there is used as it is", []string{
			"# cloud region sandbox is already registered", "# instance edgex-a already exists", "# instance edgex-b already exists", "$ k8splugin instance list",
		}},
	} {
		d := startDemo(t, data)
		ready := 0
		for _, line := range d.lines {
			if len(run.want) > 0 && strings.HasPrefix(line, run.want[0]) {
				run.want = run.want[1:]
			}
			if strings.Contains(line, "edgex-") && strings.Contains(line, " ready ") {
				ready++
			}
		}
		if len(run.want) > 0 || ready < 2 {
			t.Errorf("%s: missing %q, %d instances are ready:\n%s", run.reason, run.want, ready, strings.Join(d.lines, "\n"))
		}
		if run.want = nil; strings.Contains(run.reason, "used") {
			d.command("instance", "delete", "edgex-a", "edgex-b", "--wait")
		}
		d.stop()
	}
	left := slices.DeleteFunc(clustertest.Objects(t, "edgex-a", "edgex-b"), func(key string) bool { return !strings.Contains(key, "edgex-") })
	if len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// startedDemo is the demonstration while it serves.
type startedDemo struct {
	t      *testing.T
	lines  []string
	server string
	stop   func()
}

// startDemo runs the demonstration until it serves.
func startDemo(t *testing.T, data string) *startedDemo {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, clustertest.Kubeconfig(t), 0o600); err != nil {
		t.Fatal(err)
	}
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	exit := make(chan int, 1)
	go func() {
		code := run(ctx, []string{
			"demo", "--listen", "127.0.0.1:0", "--data", data, "--kubeconfig", kubeconfig, "--package", filepath.Join("..", "..", "..", "deployments", "samples", "edgex"),
		}, testProcess(write, write))
		_ = write.Close()
		exit <- code
	}()
	d := &startedDemo{t: t}
	d.stop = func() {
		cancel()
		go func() { _, _ = io.Copy(io.Discard, read) }()
		if code := <-exit; code != 0 {
			t.Errorf("the demonstration ends with code %d", code)
		}
	}
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		d.lines = append(d.lines, lines.Text())
		if server, ok := strings.CutSuffix(strings.TrimSpace(lines.Text()), "/docs"); ok && strings.HasPrefix(server, "http://") {
			d.server = server
		}
		if strings.HasSuffix(lines.Text(), "/metrics") {
			return d
		}
	}
	d.stop()
	t.Fatalf("the demonstration ended:\n%s", strings.Join(d.lines, "\n"))
	return nil
}

// command runs the command line against the demonstration's service.
func (d *startedDemo) command(args ...string) {
	d.t.Helper()
	if code := run(d.t.Context(), append(args, "--server", d.server), testProcess(d.t.Output(), d.t.Output())); code != 0 {
		d.t.Errorf("k8splugin %s: exit code %d", strings.Join(args, " "), code)
	}
}
