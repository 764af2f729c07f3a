package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
)

// brief returns the options of a run that is short enough to be a test: servers
// with the race detector, which the other tests have built already.
func brief(t *testing.T) options {
	t.Helper()
	clustertest.Kubeconfig(t) // demands the sandbox
	if os.Getenv("K8SPLUGIN_SANDBOX_BIN") == "" {
		t.Fatal("K8SPLUGIN_SANDBOX_BIN is not set: run the tests with `make test`, or set it to the folder of the sandbox's programs")
	}
	o := defaults()
	o.seed, o.race, o.settle = 1, true, 5*time.Minute
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

// TestStorm lets everything fail for a minute.
func TestStorm(t *testing.T) {
	o := brief(t)
	o.kills, o.duration, o.instances = 20, time.Minute, 8
	try(t, o)
}

// TestThreeReplicas lets one server of three and one etcd node of three die in
// the middle of the work.
func TestThreeReplicas(t *testing.T) {
	o := brief(t)
	o.scenario, o.instances, o.operations = scenarioReplicas, 12, 60
	if out := try(t, o); !strings.Contains(out, "operations that ended before a process was restarted") {
		t.Error("the operations did not go on without the dead")
	}
}
