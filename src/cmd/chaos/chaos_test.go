package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// TestScenarios runs scenarios for as long as a test may take, on servers with the race
// detector.
func TestScenarios(t *testing.T) {
	o := testOptions(t)
	o.race = true
	// Other suites run beside this one. A server with the race detector that gets a tenth of a
	// core cannot renew a lease of 3 seconds, even after the last fault.
	o.lease, o.settle = 5*time.Second, 10*time.Minute
	o.binary = filepath.Join(t.TempDir(), "k8splugin")
	// The Makefile has the flags that the other tests, too, are built with.
	if output, err := exec.CommandContext(t.Context(), "make", "-C", "../../..", "build-race", "OUT="+o.binary).CombinedOutput(); err != nil {
		t.Fatalf("cannot build the service: %v: %s", err, output)
	}
	t.Run("Storm", func(t *testing.T) { // everything fails for a minute
		o := o
		o.kills, o.duration, o.instances = 20, time.Minute, 8
		try(t, o)
	})
	t.Run("ThreeReplicas", func(t *testing.T) { // one server and one etcd node of three die in the middle of the work
		o := o
		o.scenario, o.instances, o.operations = scenarioReplicas, 12, 60
		if out := try(t, o); !strings.Contains(out, "operations that ended before a process was restarted") {
			t.Error("the operations did not go on without the dead")
		}
	})
}

// testOptions returns the options of a test, which needs the sandbox.
func testOptions(t *testing.T) options {
	t.Helper()
	clustertest.Kubeconfig(t)
	if os.Getenv("K8SPLUGIN_SANDBOX_BIN") == "" {
		t.Fatal("K8SPLUGIN_SANDBOX_BIN is not set: run the tests with `make test`, or set it to the folder of the sandbox's programs")
	}
	clustertest.ClusterAPI(t, filepath.Join("..", "..", "..", "tools", "clusterapi")) // other tests need the real definitions
	o := defaults()
	o.seed, o.settle = 1, 5*time.Minute
	return o
}

func try(t *testing.T, o options) string {
	t.Helper()
	var out strings.Builder
	err := o.run(t.Context(), &out)
	t.Log(out.String())
	if err != nil {
		t.Error(err)
	}
	return out.String()
}
