package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestSimulatedImages proves the sandbox's own stages on the API server that
// the tests use.
func TestSimulatedImages(t *testing.T) {
	api := sandbox(t)
	cases := map[string]struct {
		reason  string
		image   string
		restart string
		want    podState
	}{
		"Ordinary":   {"a pod becomes ready", "nginx", "Always", podState{Phase: "Running", Ready: true}},
		"NoImage":    {"a pull is tried and then backed off from", "sandbox.invalid/no-such-image:1", "Always", podState{Phase: "Pending", Waiting: "ImagePullBackOff"}},
		"Crash":      {"a crashing container is restarted", "sandbox.invalid/crash", "Always", podState{Phase: "Running", Waiting: "CrashLoopBackOff", Restarts: 1}},
		"CrashOnce":  {"a pod that may not restart fails", "sandbox.invalid/crash", "Never", podState{Phase: "Failed"}},
		"NeverReady": {"a container can take for ever", "sandbox.invalid/never-ready", "Always", podState{Phase: "Pending", Waiting: "ContainerCreating"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const pods = "/api/v1/namespaces/default/pods"
			pod := newPod(tc.image, tc.restart)
			var made object
			if err := api.do(t.Context(), http.MethodPost, pods, encode(t, pod), &made); err != nil {
				t.Fatal(err)
			}
			url := pods + "/" + made.Metadata.Name
			var got podState
			err := pollUntil(t.Context(), func() (bool, error) {
				var o object
				err := api.get(t.Context(), url, &o)
				got = o.state()
				return got == tc.want, err
			})
			if err != nil {
				t.Errorf("%s: the pod is %+v, want %+v (%v)", tc.reason, got, tc.want, err)
			}
			if err := api.do(t.Context(), http.MethodDelete, url, nil, nil); err != nil {
				t.Errorf("the pod cannot be deleted: %v", err)
			}
			err = pollUntil(t.Context(), func() (bool, error) { return api.get(t.Context(), url, nil) != nil, nil })
			if err != nil {
				t.Errorf("the pod does not go away: %v", err)
			}
		})
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := testPlane(t)
	p.ports = ports{etcd: taken, peer: taken}
	etcd := p.etcd()
	etcd.healthy = "none:" // the listener above would accept, and never answer
	if err := p.launch(etcd); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if err := p.await(t.Context(), &api{}, etcd, p.processes[0]); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v; a start on other ports would not be tried", err)
	}
}

func TestWorksNeedsEverything(t *testing.T) {
	dir := filepath.Dir(os.Getenv(envKubeconfig))
	sandbox(t)
	processes, err := readProcesses(processesPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !works(t.Context(), dir, processes) {
		t.Error("the sandbox that the tests run beside is not taken for up")
	}
	if works(t.Context(), dir, processes[:len(processes)-1]) {
		t.Error("a sandbox whose last component never started is taken for up")
	}
	processes[0].started++
	if works(t.Context(), dir, processes) {
		t.Error("a sandbox whose etcd died is taken for up")
	}
}

// testPlane is a plane that can launch components in its own folder.
func testPlane(t *testing.T) *plane {
	t.Helper()
	built, err := locate()
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{options: options{dir: t.TempDir()}, built: built, tied: true, log: newProgress(io.Discard)}
	if err := p.clear(); err != nil {
		t.Fatal(err)
	}
	return p
}

// sandbox returns a client of the API server that the tests use.
func sandbox(t *testing.T) *api {
	t.Helper()
	path := os.Getenv(envKubeconfig)
	if path == "" {
		t.Fatalf("%s is not set: run the tests with `make test`", envKubeconfig)
	}
	api, err := dial(path)
	if err != nil {
		t.Fatal(err)
	}
	return api
}
