package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/cluster/clustertest"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// vm returns a VirtualMachine of instance vnf-1.
func vm(t *testing.T, ns, name, running string) *unstructured.Unstructured {
	t.Helper()
	return objects(t, "vnf-1", ns, fmt.Sprintf(`apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: %s}
spec:
  %s
  template:
    metadata: {labels: {%s: vnf-1}}
    spec: {domain: {devices: {}, memory: {guest: 64Mi}}}
`, name, running, nf.OwnerLabel))[0]
}

// machinesIn makes a namespace in which a stand-in runs virtual machines, and applies
// some.
func machinesIn(t *testing.T) (c *Cluster, ns string, all map[string]*unstructured.Unstructured) {
	t.Helper()
	clustertest.MachineKinds(t)
	c, ns = sandbox(t)
	clustertest.RunMachines(t, ns, map[string]clustertest.Guest{"pinned": {Pinned: "its volume is not shared"}, "stuck": {Stuck: "no node has room"}})
	all = map[string]*unstructured.Unstructured{}
	var list []*unstructured.Unstructured
	for name, running := range map[string]string{
		"always": "runStrategy: Always", "running": "running: true", "manual": "runStrategy: Manual", "once": "runStrategy: Once",
		"halted": "runStrategy: Halted", "pinned": "runStrategy: Always", "stuck": "runStrategy: Always",
	} {
		all[name] = vm(t, ns, name, running)
		list = append(list, all[name])
	}
	await(t.Context(), t, c, "vnf-1", mustApply(t, c, "vnf-1", list...), nf.Current)
	return c, ns, all
}

// operate carries out a verb on a machine, and returns the setting and the change.
func operate(t *testing.T, c *Cluster, verb nf.Verb, u *unstructured.Unstructured) (nf.Setting, nf.Change) {
	t.Helper()
	settings, err := c.Machines(t.Context(), instance("vnf-1"), refs(u), verb)
	if verb == nf.Restart {
		settings, err = c.Restarting(t.Context(), instance("vnf-1"), refs(u), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := get(t, c, nf.RefOf(u)).GetResourceVersion()
	if _, err := c.Set(t.Context(), instance("vnf-1"), settings, true); err != nil {
		t.Fatalf("a dry run of %s: %v", verb, err)
	}
	if after := get(t, c, nf.RefOf(u)).GetResourceVersion(); after != before {
		t.Errorf("a dry run of %s changed the machine", verb)
	}
	return settings[0], setMachine(t, c, settings[0])
}

// setMachine makes a setting, and waits until the machine is ready.
func setMachine(t *testing.T, c *Cluster, s nf.Setting) nf.Change {
	t.Helper()
	changes, err := c.Set(t.Context(), instance("vnf-1"), []nf.Setting{s}, false)
	if err != nil {
		t.Fatalf("%s: %v", s.Machine, err)
	}
	if changes[0].Action == nf.Deleted {
		await(t.Context(), t, c, "vnf-1", changes, nf.Absent)
		await(t.Context(), t, c, "vnf-1", []nf.Change{{Ref: s.Ref, Action: nf.Unchanged}}, nf.Current)
		return changes[0]
	}
	await(t.Context(), t, c, "vnf-1", changes, nf.Current)
	return changes[0]
}

func guestOf(t *testing.T, c *Cluster, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	ref := nf.RefOf(u)
	ref.Kind = "VirtualMachineInstance"
	got, err := c.Lookup(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if got == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: got}
}

// TestMachines starts, stops, restarts and migrates virtual machines, with virt-api and
// without it.
func TestMachines(t *testing.T) {
	for name, served := range map[string]bool{"VirtAPI": true, "Without": false} {
		t.Run(name, func(t *testing.T) {
			c, ns, all := machinesIn(t)
			journal := func() []string { return nil }
			if served {
				journal = clustertest.NewVirtAPI(t, ns).Journal
			} else {
				clustertest.WithoutVirtAPI(t)
			}
			asked := func(reason, machine, verb string) {
				t.Helper()
				var want []string
				if served {
					for _, options := range []string{`{"dryRun":["All"]}`, `{}`} {
						want = append(want, "PUT virtualmachines/"+machine+"/"+verb+" "+options)
					}
				}
				diff(t, reason, want, journal())
			}

			stopped, _ := operate(t, c, nf.Stop, all["always"])
			want := nf.Setting{Ref: nf.RefOf(all["always"]), Path: "/spec/runStrategy", Was: json.RawMessage(`"Always"`), Value: json.RawMessage(`"Halted"`), Machine: nf.Stop}
			diff(t, "a stop halts it", want, stopped)
			asked("a stop", "always", "stop")
			if guestOf(t, c, all["always"]) != nil {
				t.Error("the stopped machine still runs")
			}
			if change := setMachine(t, c, stopped); change.Action != nf.Unchanged {
				t.Errorf("again: %+v", change)
			}
			diff(t, "nothing is asked for again", []string(nil), journal())
			back, _ := stopped.Reversed()
			if setMachine(t, c, back); guestOf(t, c, all["always"]) == nil {
				t.Error("the undo has not started it")
			}
			journal()

			stopped, _ = operate(t, c, nf.Stop, all["running"])
			if stopped.Path != "/spec/running" || string(stopped.Value) != "false" {
				t.Errorf("the older field: %+v", stopped)
			}
			stopped, _ = operate(t, c, nf.Stop, all["once"])
			journal()
			back, _ = stopped.Reversed() // no verb of KubeVirt sets this strategy
			if _, err := c.Set(t.Context(), instance("vnf-1"), []nf.Setting{back}, false); err != nil || clustertest.RunStrategy(get(t, c, nf.RefOf(all["once"]))) != "Once" {
				t.Errorf("the former strategy: %v", err)
			}
			diff(t, "it is a patch", []string(nil), journal())
			if operate(t, c, nf.Start, all["halted"]); guestOf(t, c, all["halted"]) == nil {
				t.Error("the machine was not started")
			}
			asked("a start", "halted", "start")

			started, _ := operate(t, c, nf.Start, all["manual"])
			if string(started.Value) != `"Manual"` || guestOf(t, c, all["manual"]) == nil {
				t.Errorf("a machine that follows requests keeps its strategy: %+v", started)
			}
			asked("a start on request", "manual", "start")
			if back, _ = started.Reversed(); setMachine(t, c, back).Action != nf.Configured || guestOf(t, c, all["manual"]) != nil {
				t.Error("the undo has not stopped it")
			}
			journal()

			was := guestOf(t, c, all["always"]).GetUID()
			restarted, change := operate(t, c, nf.Restart, all["always"])
			if is := guestOf(t, c, all["always"]).GetUID(); is == was || change.UID != string(was) || change.Kind != "VirtualMachineInstance" {
				t.Errorf("restart: %s became %s; %+v", was, is, change)
			}
			asked("a restart", "always", "restart")
			if change = setMachine(t, c, restarted); change.Action != nf.Unchanged {
				t.Errorf("it is restarted once: %+v", change)
			}
			for range 2 {
				moved, change := operate(t, c, nf.Migrate, all["always"])
				if node := text(guestOf(t, c, all["always"]).Object, "status", "nodeName"); node != "node-b" || change.Action != nf.Created {
					t.Errorf("it runs on %s: %+v", node, change)
				}
				asked("a migration", "always", "migrate")
				if again := setMachine(t, c, moved); again.UID != change.UID {
					t.Errorf("it is migrated once: %+v, and %+v", change, again)
				}
			}
			diff(t, "nothing is asked for again", []string(nil), journal())
		})
	}
}

// TestMachinesRefused has requests that KubeVirt would reject.
func TestMachinesRefused(t *testing.T) {
	c, ns, all := machinesIn(t)
	clustertest.WithoutVirtAPI(t)
	config := objects(t, "vnf-1", ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: config}}")[0]
	theirs := vm(t, ns, "theirs", "runStrategy: Halted")
	theirs.SetLabels(map[string]string{nf.OwnerLabel: "vnf-2"})
	mustApply(t, c, "vnf-1", config)
	mustApply(t, c, "vnf-2", theirs)
	cases := map[string]struct {
		reason  string
		verb    nf.Verb
		machine *unstructured.Unstructured
		kind    nf.Kind
		want    string
	}{
		"Runs":     {"it runs already", nf.Start, all["always"], nf.Conflict, "VirtualMachine " + ns + "/always: runs already"},
		"Stopped":  {"it is stopped already", nf.Stop, all["halted"], nf.Conflict, "is stopped"},
		"Manual":   {"it was never started", nf.Stop, all["manual"], nf.Conflict, "does not run"},
		"Restart":  {"nothing to restart", nf.Restart, all["halted"], nf.Conflict, "does not run: start it"},
		"Migrate":  {"nothing to migrate", nf.Migrate, all["halted"], nf.Conflict, "does not run: start it"},
		"Pinned":   {"KubeVirt's reason", nf.Migrate, all["pinned"], nf.Unsupported, "cannot be migrated while it runs: its volume is not shared"},
		"Kind":     {"another kind", nf.Stop, config, nf.Unsupported, "only a VirtualMachine of KubeVirt has this action"},
		"Absent":   {"another client has deleted it", nf.Stop, vm(t, ns, "absent", ""), nf.NotFound, "it does not exist in the region"},
		"Foreign":  {"another owner", nf.Start, theirs, nf.Conflict, "vnf-2"},
		"OnceOnly": {"a strategy that runs it once", nf.Start, all["once"], nf.Conflict, "has the run strategy Once"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.Machines(t.Context(), instance("vnf-1"), refs(tc.machine), tc.verb)
			if nf.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	settings, err := c.Machines(t.Context(), instance("vnf-1"), refs(all["stuck"]), nf.Migrate)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := c.Set(t.Context(), instance("vnf-1"), settings, false)
	if err != nil {
		t.Fatal(err)
	}
	for h, err := range c.Watch(t.Context(), instance("vnf-1"), changes) {
		if err != nil {
			t.Fatal(err)
		}
		if h.Status == nf.StatusFailed {
			if h.Message != "no node has room" {
				t.Errorf("the reason of a failed migration: %q", h.Message)
			}
			break
		}
	}
}
