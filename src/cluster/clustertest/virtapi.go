package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
)

const virtPath = "/apis/subresources.kubevirt.io/v1"

// virtAPIService registers a server of this machine as an aggregated API server, as
// KubeVirt's operator registers virt-api.
const virtAPIService = `apiVersion: v1
kind: Service
metadata: {name: virt-api, namespace: %[1]s}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.subresources.kubevirt.io}
spec:
  group: subresources.kubevirt.io
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  insecureSkipTLSVerify: true
  service: {name: virt-api, namespace: %[1]s, port: %[2]d}
`

// VirtAPI is a stand-in for virt-api, KubeVirt's aggregated API server. It is strict: it
// serves the verbs start, stop, restart and migrate of virtual machines, responds with
// 409 in the cases in which virt-api does (pkg/virt-api/rest/lifecycle.go), and fails
// the test on any other request.
type VirtAPI struct {
	t       testing.TB
	mu      sync.Mutex
	journal []string
}

// NewVirtAPI makes the sandbox serve the group subresources.kubevirt.io until the test
// ends. The namespace is one of the test, and exists.
func NewVirtAPI(t testing.TB, namespace string) *VirtAPI {
	t.Helper()
	WithoutVirtAPI(t)
	v := &VirtAPI{t: t}
	server := httptest.NewTLSServer(v)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	both := Documents(t, fmt.Sprintf(virtAPIService, namespace, port))
	if _, err := clientFor(t, "", "v1", "services").Namespace(namespace).Create(t.Context(), both[0], metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	api := clientFor(t, "apiregistration.k8s.io", "v1", "apiservices")
	cfg := config(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := remove(ctx, cfg, "/apis/apiregistration.k8s.io/v1/apiservices/"+both[1].GetName()); err != nil {
			t.Error(err)
		}
	})
	if _, err := api.Create(t.Context(), both[1], metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, api, both[1].GetName(), func(now *unstructured.Unstructured) bool { return isTrue(now, "Available") })
	discovered := func() error {
		client, err := discovery.NewDiscoveryClientForConfig(cfg)
		if err != nil {
			return err
		}
		groups, _, err := client.ServerGroupsAndResources()
		if err == nil && !slices.ContainsFunc(groups, func(g *metav1.APIGroup) bool { return g.Name == "subresources.kubevirt.io" }) {
			err = errors.New("the group is not discovered")
		}
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err := discovered(); err != nil; err = discovered() { // the API server reads the group some time after it is available
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return v
}

// Journal returns the requests for verbs since the last call, such as
// "PUT virtualmachines/fw/stop {}".
func (v *VirtAPI) Journal() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := v.journal
	v.journal = nil
	return out
}

// ServeHTTP implements http.Handler.
func (v *VirtAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		v.describe(w, r)
		return
	}
	// /apis/…/v1/namespaces/NAMESPACE/virtualmachines/NAME/VERB
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, virtPath+"/"), "/")
	body, err := io.ReadAll(r.Body)
	if r.Method != http.MethodPut || err != nil || len(parts) != 5 || parts[0] != "namespaces" || parts[2] != "virtualmachines" || r.URL.RawQuery != "" {
		v.t.Errorf("virt-api does not serve %s %s: %v", r.Method, r.URL, err)
		http.NotFound(w, r)
		return
	}
	v.mu.Lock()
	v.journal = append(v.journal, "PUT "+strings.Join(parts[2:], "/")+" "+string(body))
	v.mu.Unlock()
	var options struct {
		DryRun []string `json:"dryRun"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&options); err != nil {
		v.t.Errorf("the options of %s: %v", r.URL, err)
	}
	if err := v.verb(r, parts[1], parts[3], parts[4], options.DryRun); err != nil {
		status := apierrors.NewInternalError(err).Status()
		if known, ok := err.(apierrors.APIStatus); ok {
			status = known.Status()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// describe serves the discovery of the group. As in KubeVirt, its resources have no
// kinds.
func (v *VirtAPI) describe(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != virtPath {
		http.NotFound(w, r) // the aggregator asks for documents that virt-api does not have either
		return
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "subresources.kubevirt.io/v1"}
	for _, verb := range []string{"start", "stop", "restart", "migrate"} {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "virtualmachines/" + verb, Namespaced: true})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// verb carries out a verb on a virtual machine.
func (v *VirtAPI) verb(r *http.Request, namespace, name, verb string, dry []string) error {
	conflict := func(why string) error {
		return apierrors.NewConflict(schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachine"}, name, fmt.Errorf("%s", why))
	}
	machines := clientFor(v.t, "kubevirt.io", "v1", "virtualmachines").Namespace(namespace)
	vm, err := machines.Get(r.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	guest, err := clientFor(v.t, "kubevirt.io", "v1", "virtualmachineinstances").Namespace(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	runs, strategy := err == nil, RunStrategy(vm)
	follows := strategy == "Manual" || strategy == "RerunOnFailure"
	var change, status map[string]any
	switch {
	case verb == "start" && runs:
		return conflict("VM is already running")
	case verb == "start" && !follows && strategy != "Halted":
		return conflict(strategy + " does not support manual start requests")
	case verb == "start" && follows:
		status = requestsOf(map[string]any{"action": "Start"})
	case verb == "start":
		change = runningOf(vm, true)
	case verb == "stop" && (strategy == "Halted" || follows && !runs):
		return conflict("VM is not running")
	case verb == "stop" && follows:
		status = requestsOf(map[string]any{"action": "Stop", "uid": string(guest.GetUID())})
	case verb == "stop":
		change = runningOf(vm, false)
	case verb == "restart" && (strategy == "Halted" || strategy == "Once" || !runs):
		return conflict("VM is not running")
	case verb == "restart":
		status = requestsOf(map[string]any{"action": "Stop", "uid": string(guest.GetUID())}, map[string]any{"action": "Start"})
	case verb == "migrate" && (!runs || phaseOf(guest) != "Running"):
		return conflict("VM is not running")
	case verb == "migrate":
		return v.migrate(r, namespace, name, dry)
	default:
		v.t.Errorf("virt-api has no verb %s", verb)
		return apierrors.NewBadRequest("no such verb")
	}
	if requests, _, _ := unstructured.NestedSlice(vm.Object, "status", "stateChangeRequests"); status != nil && len(requests) > 0 {
		return conflict("unable to complete request: stop/start already underway")
	}
	patch, subresource := map[string]any{"spec": change}, []string(nil)
	if status != nil {
		patch, subresource = map[string]any{"status": status}, []string{"status"}
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = machines.Patch(r.Context(), name, types.MergePatchType, body, metav1.PatchOptions{DryRun: dry, FieldManager: "virt-api"}, subresource...)
	return err
}

func requestsOf(requests ...any) map[string]any {
	return map[string]any{"stateChangeRequests": slices.Clone(requests)}
}

// runningOf returns the change of a machine's specification that makes it run or not.
func runningOf(vm *unstructured.Unstructured, runs bool) map[string]any {
	if _, found, _ := unstructured.NestedBool(vm.Object, "spec", "running"); found {
		return map[string]any{"running": runs}
	}
	return map[string]any{"runStrategy": map[bool]string{true: "Always", false: "Halted"}[runs]}
}

func (v *VirtAPI) migrate(r *http.Request, namespace, name string, dry []string) error {
	migration := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": map[string]any{"generateName": "kubevirt-migrate-vm-"},
		"spec": map[string]any{"vmiName": name},
	}}
	_, err := clientFor(v.t, "kubevirt.io", "v1", "virtualmachineinstancemigrations").Namespace(namespace).Create(r.Context(), migration, metav1.CreateOptions{DryRun: dry})
	return err
}
