package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// machineAPI is the group of KubeVirt's verbs on virtual machines. virt-api, an
// aggregated API server, serves it. Only the group can be discovered: its resources
// have no kinds, and client-go omits those.
const machineAPI = "subresources.kubevirt.io"

const machineGroup = "kubevirt.io"

// The run strategies of a virtual machine that matter here; KubeVirt's
// api/core/v1/types.go has their meaning.
const (
	always, halted, once = "Always", "Halted", "Once"
	manual, rerun        = "Manual", "RerunOnFailure"
)

func isMachine(ref nf.Ref) bool { return ref.Group == machineGroup && ref.Kind == "VirtualMachine" }

// Machines returns the settings that start, stop, restart or migrate the owner's
// virtual machines of KubeVirt, in the given order. It returns the first error:
//
//   - nf.NotFound and nf.Failed as Scaling does;
//   - nf.Unsupported for an object that is not a VirtualMachine, and for a migration of
//     one that cannot be migrated while it runs;
//   - nf.Conflict if an object belongs to another owner; if a machine runs already, or
//     does not run; if its run strategy does not allow the verb; or while KubeVirt
//     starts, stops or migrates it.
func (c *Cluster) Machines(ctx context.Context, owner nf.Subject, refs []nf.Ref, verb nf.Verb) ([]nf.Setting, error) {
	for _, ref := range refs {
		if !isMachine(ref) {
			return nil, nf.E(nf.Unsupported, string(verb), ref.String(), errors.New("only a VirtualMachine of KubeVirt has this action"))
		}
	}
	targets, err := c.client.apis.resolveAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	found, err := machinesOf(ctx, c.client)
	if err != nil {
		return nil, err
	}
	out := make([]nf.Setting, len(refs))
	err = each(c.client.parallel, len(refs), func(i int) (err error) {
		out[i], err = found.setting(ctx, liveObject{c.client, owner, targets[i]}, verb)
		return err
	})
	return out, err
}

// machines is what a region serves of KubeVirt.
type machines struct {
	verbs             string // version of machineAPI; empty: it is not served
	guests, migrating kind   // VirtualMachineInstance, VirtualMachineInstanceMigration
}

// machinesOf reads what the region serves of KubeVirt. It returns an error while virt-api
// is registered, but does not respond, and nf.Unsupported without KubeVirt.
func machinesOf(ctx context.Context, c *client) (machines, error) {
	var out machines
	ks, err := c.apis.kinds(ctx, nil)
	if err == nil && ks.machine == "" { // it may be new
		ks, err = c.apis.discover(ctx)
	}
	if err != nil {
		return out, err
	}
	if ks.hidden(machineAPI) {
		return out, c.apis.unreadable(ctx, ks.partial)
	}
	out.verbs = ks.machine
	for name, k := range map[string]*kind{"VirtualMachineInstance": &out.guests, "VirtualMachineInstanceMigration": &out.migrating} {
		var served bool
		if *k, served = ks.any(schema.GroupVersionKind{Group: machineGroup, Version: "v1", Kind: name}); !served {
			return out, nf.E(nf.Unsupported, "read", name+" objects", errors.New("the region does not serve the kind"))
		}
	}
	return out, nil
}

// machine is a virtual machine, as it is at present.
type machine struct {
	object liveObject
	served machines
	vm     *unstructured.Unstructured
	guest  *unstructured.Unstructured // nil: there is none
}

// at reads the VirtualMachineInstance of a machine that was read.
func (ms machines) at(ctx context.Context, object liveObject, vm *unstructured.Unstructured) (machine, error) {
	m := machine{object, ms, vm, nil}
	var guest unstructured.Unstructured
	err := object.client.get(ctx, m.guestTarget(), &guest)
	if err == nil {
		m.guest = &guest
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return m, object.client.region.failObject(ctx, "read", m.guestTarget().ref, err)
}

func (m machine) guestTarget() target { return m.targetOf(m.served.guests, m.object.target.ref.Name) }

func (m machine) targetOf(k kind, name string) target {
	return target{nf.Ref{Group: k.Group, Version: k.Version, Kind: k.Kind, Namespace: m.object.target.ref.Namespace, Name: name}, k, true}
}

// strategy returns the field that says whether the machine is to run, and its run
// strategy.
func (m machine) strategy() (path, strategy string) {
	running, found := nf.At(m.vm.Object, "/spec/running")
	switch strategy = text(m.vm.Object, "spec", "runStrategy"); {
	case strategy != "":
		return "/spec/runStrategy", strategy
	case found && running == true:
		return "/spec/running", always
	case found:
		return "/spec/running", halted
	}
	return "/spec/runStrategy", halted
}

// follows reports whether a machine with a run strategy starts and stops on request, and
// keeps its strategy.
func follows(strategy string) bool { return strategy == manual || strategy == rerun }

// effect returns the run strategy after a verb.
func effect(verb nf.Verb, strategy string) string {
	switch {
	case follows(strategy):
		return strategy
	case verb == nf.Start:
		return always
	}
	return halted
}

// valueOf returns the value of the field at a path for a run strategy.
func valueOf(path, strategy string) any {
	if path == "/spec/running" {
		return strategy == always
	}
	return strategy
}

// runs reports whether the machine has an instance that is not ending.
func (m machine) runs() bool {
	if m.guest == nil || m.guest.GetDeletionTimestamp() != nil {
		return false
	}
	return !hasEnded(m.guest)
}

// requested returns what KubeVirt was asked to do next, Start or Stop, and has not
// done yet; empty: nothing.
func (m machine) requested() string {
	requests, _, _ := unstructured.NestedSlice(m.vm.Object, "status", "stateChangeRequests")
	if len(requests) == 0 {
		return ""
	}
	last, _ := requests[len(requests)-1].(map[string]any)
	action, _ := last["action"].(string)
	return action
}

// setting returns the setting for a verb on a machine.
func (ms machines) setting(ctx context.Context, object liveObject, verb nf.Verb) (nf.Setting, error) {
	out := nf.Setting{Ref: object.target.ref, Machine: verb}
	vm, err := object.read(ctx, string(verb))
	if err != nil {
		return out, err
	}
	m, err := ms.at(ctx, object, vm)
	if err != nil {
		return out, err
	}
	if why := m.prevents(verb); why != "" {
		return out, m.refuse(nf.Conflict, verb, why)
	}
	if verb == nf.Restart || verb == nf.Migrate {
		if out.Guest = string(m.guest.GetUID()); verb == nf.Migrate {
			out.Last, err = m.migratable(ctx)
		}
		return out, err
	}
	path, strategy := m.strategy()
	out.Path = path
	is, _ := nf.At(vm.Object, path)
	if out.Was, err = nf.RawOf(is); err == nil {
		out.Value, err = nf.RawOf(valueOf(path, effect(verb, strategy)))
	}
	return out, err
}

// refuse returns an error about the machine.
func (m machine) refuse(kind nf.Kind, verb nf.Verb, message string) error {
	return nf.E(kind, string(verb), "workloads", nf.Violations{{Object: m.object.target.ref, Message: message}})
}

// prevents returns why KubeVirt does not carry out a verb at present; empty: it does.
// These are the cases in which virt-api responds with 409 (pkg/virt-api/rest/lifecycle.go).
func (m machine) prevents(verb nf.Verb) string {
	_, strategy := m.strategy()
	switch {
	case m.requested() != "":
		return "is being started or stopped: try again later"
	case verb == nf.Start && m.runs():
		return "runs already"
	case verb == nf.Start && strategy != halted && !follows(strategy):
		return fmt.Sprintf("has the run strategy %s: KubeVirt starts it by itself, and not on request", strategy)
	case verb == nf.Stop && strategy == halted:
		return "is stopped, or is being stopped"
	case verb == nf.Stop && follows(strategy) && !m.runs():
		return "does not run"
	case (verb == nf.Restart || verb == nf.Migrate) && !m.runs(), verb == nf.Migrate && text(m.guest.Object, "status", "phase") != "Running":
		return "does not run: start it"
	case verb == nf.Restart && (strategy == halted || strategy == once):
		return fmt.Sprintf("has the run strategy %s: KubeVirt would not start it again", strategy)
	}
	return ""
}

// switchMachine returns the request that starts or stops the machine that was read, or
// nil if it is as wanted. An undo may restore a strategy that no verb of KubeVirt
// sets; then the request is a patch.
func (o fieldSetter) switchMachine(ctx context.Context, vm *unstructured.Unstructured) (func() *rest.Request, error) {
	m, err := o.machines.at(ctx, o.object, vm)
	if err != nil {
		return nil, err
	}
	verb, wanted := o.setting.Machine, nf.ValueOf(o.setting.Value)
	is, _ := nf.At(vm.Object, o.setting.Path)
	path, strategy := m.strategy()
	if reflect.DeepEqual(is, wanted) && (!follows(strategy) || m.runs() == (verb == nf.Start) || m.requested() != "") {
		return nil, nil
	}
	ending := m.guest != nil && !hasEnded(m.guest) // virt-api does not start it again yet
	if o.machines.verbs != "" && path == o.setting.Path && (verb == nf.Stop || follows(strategy) || !ending) && reflect.DeepEqual(valueOf(path, effect(verb, strategy)), wanted) {
		return m.put(verb, o.dry)
	}
	if reflect.DeepEqual(is, wanted) {
		return m.request(verb, o.dry)
	}
	return o.patch(vm, wanted)
}

// request returns the request that virt-api itself sends for a machine that follows
// requests: they are in its status.
func (m machine) request(verb nf.Verb, dry bool) (func() *rest.Request, error) {
	wanted := map[string]any{"action": "Start"}
	if verb == nf.Stop {
		wanted = map[string]any{"action": "Stop", "uid": m.guest.GetUID()}
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": m.vm.GetUID(), "resourceVersion": m.vm.GetResourceVersion()},
		"status":   map[string]any{"stateChangeRequests": []any{wanted}},
	})
	return func() *rest.Request {
		r := m.object.client.merge(m.object.target, manager(m.object.owner), body).SubResource("status")
		if dry {
			r.Param("dryRun", "All")
		}
		return r
	}, err
}

// put returns a request to KubeVirt's API of verbs.
func (m machine) put(verb nf.Verb, dry bool) (func() *rest.Request, error) {
	options := map[string]any{}
	if dry {
		options["dryRun"] = []string{"All"}
	}
	body, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the options of %s: %w", verb, err)
	}
	return func() *rest.Request {
		return m.object.client.verb("PUT").AbsPath("/apis", machineAPI, m.served.verbs).Namespace(m.object.target.ref.Namespace).
			Resource("virtualmachines").Name(m.object.target.ref.Name).SubResource(string(verb)).
			SetHeader("Content-Type", "application/json").Body(body)
	}, nil
}
