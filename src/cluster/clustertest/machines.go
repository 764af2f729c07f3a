package clustertest

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// machineDefinitions are KubeVirt's own CustomResourceDefinitions.
//
//go:embed kubevirt.yaml
var machineDefinitions string

// MachineKinds makes the sandbox serve the kinds of KubeVirt. Other tests may need them at
// the same time, so they stay. No program of KubeVirt runs.
func MachineKinds(t testing.TB) {
	t.Helper()
	Serve(t, machineDefinitions)
}

// WithoutVirtAPI returns once no test, in any process, has a VirtAPI. Until the test ends,
// no other one gets one.
func WithoutVirtAPI(t testing.TB) {
	t.Helper()
	file, err := os.Open(os.Getenv(Variable))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // this unlocks it
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// Guest is how a VirtualMachine of a test runs.
type Guest struct {
	Pinned string            // the message of its condition LiveMigratable, which is False; empty: True
	Stuck  string            // the reason for which its migrations fail
	IPs    map[string]string // its addresses, by interface
}

// VirtController is a stand-in for KubeVirt's controllers, for the VirtualMachines of a
// namespace: it creates and deletes their instances, and writes statuses in KubeVirt's
// words. Nothing runs in the instances. A machine takes some rounds to change, so that a
// client that does not wait for it is found out.
type VirtController struct {
	t        testing.TB
	guests   map[string]Guest
	machines dynamic.ResourceInterface
	running  dynamic.ResourceInterface
	moving   dynamic.ResourceInterface
}

// RunMachines runs a VirtController until the test ends. A machine without a guest runs
// without addresses.
func RunMachines(t testing.TB, namespace string, guests map[string]Guest) {
	t.Helper()
	of := func(resource string) dynamic.ResourceInterface {
		return clientFor(t, "kubevirt.io", "v1", resource).Namespace(namespace)
	}
	c := &VirtController{t, guests, of("virtualmachines"), of("virtualmachineinstances"), of("virtualmachineinstancemigrations")}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
		last, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := c.release(last, func(*unstructured.Unstructured) bool { return true }); err != nil {
			t.Error(err)
		}
	})
	go func() {
		defer close(done)
		rounds := time.NewTicker(100 * time.Millisecond)
		defer rounds.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-rounds.C:
			}
			if err := c.round(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				t.Errorf("the stand-in for KubeVirt's controllers: %v", err)
				return
			}
		}
	}()
}

// round looks at each object once.
func (c *VirtController) round(ctx context.Context) error {
	machines, err := c.machines.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range machines.Items {
		err = errors.Join(err, c.machine(ctx, &machines.Items[i]))
	}
	err = errors.Join(err, c.release(ctx, func(guest *unstructured.Unstructured) bool {
		return guest.GetDeletionTimestamp() != nil && !slices.ContainsFunc(machines.Items, func(vm unstructured.Unstructured) bool { return vm.GetName() == guest.GetName() })
	}))
	migrations, failed := c.moving.List(ctx, metav1.ListOptions{})
	if failed != nil {
		return errors.Join(err, failed)
	}
	for i := range migrations.Items {
		err = errors.Join(err, c.migrate(ctx, &migrations.Items[i]))
	}
	return err
}

// release removes KubeVirt's finalizer from instances.
func (c *VirtController) release(ctx context.Context, which func(*unstructured.Unstructured) bool) error {
	guests, err := c.running.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range guests.Items {
		if guest := &guests.Items[i]; which(guest) {
			_, failed := c.running.Patch(ctx, guest.GetName(), types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
			if !apierrors.IsNotFound(failed) {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

// machine brings a machine one step nearer to what it is to be.
func (c *VirtController) machine(ctx context.Context, vm *unstructured.Unstructured) error {
	guest, err := c.running.Get(ctx, vm.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		guest, err = nil, nil
	}
	if err != nil {
		return err
	}
	ending := guest != nil && guest.GetDeletionTimestamp() != nil
	requests, _, _ := unstructured.NestedSlice(vm.Object, "status", "stateChangeRequests")
	wanted := RunStrategy(vm) == "Always" || guest != nil && RunStrategy(vm) != "Halted"
	if len(requests) > 0 {
		request, _ := requests[0].(map[string]any)
		wanted = request["action"] == "Start"
		if uid, _ := request["uid"].(string); request["action"] == "Stop" && (guest == nil || uid != string(guest.GetUID())) || wanted && guest != nil {
			return c.setMachine(ctx, vm, guest, requests[1:]) // it is done
		}
	}
	switch {
	case ending: // it is gone only after its machine says that it stops
		if err := c.setMachine(ctx, vm, guest, requests); err != nil {
			return err
		}
		return c.release(ctx, func(g *unstructured.Unstructured) bool { return g.GetUID() == guest.GetUID() })
	case wanted && guest == nil:
		if err := c.setMachine(ctx, vm, nil, requests); err != nil {
			return err
		}
		_, err = c.running.Create(ctx, guestOf(vm), metav1.CreateOptions{})
		return err
	case !wanted && guest != nil:
		return c.running.Delete(ctx, guest.GetName(), metav1.DeleteOptions{})
	case guest != nil && phaseOf(guest) == "":
		return c.boot(ctx, guest)
	}
	return c.setMachine(ctx, vm, guest, requests)
}

// RunStrategy returns the run strategy of a VirtualMachine.
func RunStrategy(vm *unstructured.Unstructured) string {
	strategy, _, _ := unstructured.NestedString(vm.Object, "spec", "runStrategy")
	if running, _, _ := unstructured.NestedBool(vm.Object, "spec", "running"); running {
		strategy = "Always"
	}
	return cmp.Or(strategy, "Halted")
}

func phaseOf(u *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	return phase
}

func guestOf(vm *unstructured.Unstructured) *unstructured.Unstructured {
	template, _, _ := unstructured.NestedMap(vm.Object, "spec", "template")
	guest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "spec": template["spec"]}}
	metadata, _ := template["metadata"].(map[string]any)
	labels, _, _ := unstructured.NestedStringMap(metadata, "labels")
	guest.SetLabels(labels)
	guest.SetName(vm.GetName())
	guest.SetFinalizers([]string{"kubevirt.io/foregroundDeleteVirtualMachine"})
	guest.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(vm, vm.GroupVersionKind())})
	return guest
}

// setMachine writes the status of a machine.
func (c *VirtController) setMachine(ctx context.Context, vm, guest *unstructured.Unstructured, requests []any) error {
	ending := guest != nil && guest.GetDeletionTimestamp() != nil
	status := map[string]any{"created": guest != nil, "ready": guest != nil && !ending && phaseOf(guest) == "Running", "stateChangeRequests": requests}
	switch {
	case ending:
		status["printableStatus"] = "Stopping"
	case guest != nil && phaseOf(guest) == "Running":
		status["printableStatus"] = "Running"
	case guest != nil || RunStrategy(vm) == "Always":
		status["printableStatus"] = "Starting"
	default:
		status["printableStatus"] = "Stopped"
	}
	return setStatus(ctx, c.machines, vm, status)
}

// boot writes the status of an instance that runs.
func (c *VirtController) boot(ctx context.Context, guest *unstructured.Unstructured) error {
	is := c.guests[guest.GetName()]
	migratable := map[string]any{"type": "LiveMigratable", "status": "True", "lastProbeTime": nil, "lastTransitionTime": nil}
	if is.Pinned != "" {
		migratable["status"], migratable["reason"], migratable["message"] = "False", "DisksNotLiveMigratable", is.Pinned
	}
	var interfaces []any
	all, _, _ := unstructured.NestedSlice(guest.Object, "spec", "domain", "devices", "interfaces")
	for i, v := range all {
		fields, _ := v.(map[string]any)
		name, _ := fields["name"].(string)
		one := map[string]any{"name": name, "mac": fields["macAddress"], "interfaceName": fmt.Sprintf("eth%d", i), "infoSource": "domain, guest-agent"}
		if fields["macAddress"] == nil {
			one["mac"] = fmt.Sprintf("02:00:00:00:01:%02x", i)
		}
		if ip := is.IPs[name]; ip != "" {
			one["ipAddress"], one["ipAddresses"] = ip, []any{ip}
		}
		interfaces = append(interfaces, one)
	}
	return setStatus(ctx, c.running, guest, map[string]any{
		"phase": "Running", "nodeName": "node-a", "interfaces": interfaces,
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastProbeTime": nil, "lastTransitionTime": nil}, migratable},
	})
}

// migrate ends a migration that has waited a round.
func (c *VirtController) migrate(ctx context.Context, migration *unstructured.Unstructured) error {
	name, _, _ := unstructured.NestedString(migration.Object, "spec", "vmiName")
	is := c.guests[name]
	switch phaseOf(migration) {
	case "":
		return setStatus(ctx, c.moving, migration, map[string]any{"phase": "Pending"})
	case "Pending":
		if is.Stuck != "" {
			return setStatus(ctx, c.moving, migration, map[string]any{"phase": "Failed", "migrationState": map[string]any{"failed": true, "failureReason": is.Stuck}})
		}
		guest, err := c.running.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := setStatus(ctx, c.running, guest, map[string]any{"nodeName": "node-b"}); err != nil {
			return err
		}
		return setStatus(ctx, c.moving, migration, map[string]any{"phase": "Succeeded"})
	}
	return nil
}

// setStatus changes fields of the status of an object that was read.
func setStatus(ctx context.Context, api dynamic.ResourceInterface, of *unstructured.Unstructured, status map[string]any) error {
	patch := unstructured.Unstructured{Object: map[string]any{"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "status": status}}
	patch.SetName(of.GetName())
	patch.SetResourceVersion(of.GetResourceVersion())
	body, err := patch.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = api.Patch(ctx, of.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: "virt-controller"}, "status")
	return err
}
