package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// ClusterController is a controller that moves the status of the objects of Cluster API in a
// namespace, as the contracts of its providers say, without any machine: a test double of
// their controllers. The control plane is another API server. It is strict: it reports
// every part of a Cluster that is deleted before the Cluster, every template that is
// deleted while machines use it, and every wait that would never end with a real provider.
type ClusterController struct {
	t          testing.TB
	namespace  string
	management dynamic.Interface // the cluster with the objects
	workload   dynamic.Interface // the cluster that the machines form

	mu         sync.Mutex
	kubeconfig []byte
	rolled     map[string]string // the template that the machines of a MachineDeployment have
	steps      []string          // what was done, in order
}

// RunClusters starts the controller for a namespace of the management cluster, until the
// test ends. Both clusters are given by their kubeconfigs.
func RunClusters(t testing.TB, management []byte, namespace string, workload []byte) *ClusterController {
	t.Helper()
	m := &ClusterController{
		t: t, namespace: namespace, management: clientOf(t, management), workload: clientOf(t, workload),
		kubeconfig: workload, rolled: map[string]string{},
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { m.run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return m
}

func clientOf(t testing.TB, kubeconfig []byte) dynamic.Interface {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Machines returns how many up-to-date machines a MachineDeployment has.
func (m *ClusterController) Machines(deployment string) int64 {
	m.t.Helper()
	found, err := m.api(workerSets).Get(m.t.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	n, _, _ := unstructured.NestedInt64(found.Object, "status", "upToDateReplicas")
	return n
}

// HasTemplate reports whether a template of machines exists.
func (m *ClusterController) HasTemplate(name string) bool {
	m.t.Helper()
	_, err := m.api(templates).Get(m.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		m.t.Fatal(err)
	}
	return err == nil
}

// Rotate replaces the kubeconfig in the Secret of a cluster.
func (m *ClusterController) Rotate(kubeconfig []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kubeconfig = kubeconfig
}

// Steps returns what the controller has done, in order.
func (m *ClusterController) Steps() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.steps...)
}

func (m *ClusterController) run(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := m.reconcile(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			m.t.Errorf("the controller of machines has failed: %v", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// The resources of Cluster API that the controller knows.
var (
	clusters   = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "clusters"}
	workerSets = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machinedeployments"}
	planes     = schema.GroupVersionResource{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Resource: "kubeadmcontrolplanes"}
	infra      = schema.GroupVersionResource{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Resource: "devclusters"}
	templates  = schema.GroupVersionResource{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Resource: "devmachinetemplates"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	daemons    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

const finalizer = "cluster.cluster.x-k8s.io"

func (m *ClusterController) api(of schema.GroupVersionResource) dynamic.ResourceInterface {
	return m.management.Resource(of).Namespace(m.namespace)
}

func (m *ClusterController) reconcile(ctx context.Context) error {
	all, err := m.api(clusters).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all.Items {
		cluster := &all.Items[i]
		if cluster.GetDeletionTimestamp() != nil {
			err = errors.Join(err, m.remove(ctx, cluster))
		} else {
			err = errors.Join(err, m.provide(ctx, cluster))
		}
	}
	return err
}

// provide moves a cluster that is to exist by one step.
func (m *ClusterController) provide(ctx context.Context, cluster *unstructured.Unstructured) error {
	name := cluster.GetName()
	if len(cluster.GetFinalizers()) == 0 {
		m.did("adopt " + name)
		return m.patch(ctx, clusters, name, map[string]any{"metadata": map[string]any{"finalizers": []any{finalizer}}})
	}
	infraName, _, _ := unstructured.NestedString(cluster.Object, "spec", "infrastructureRef", "name")
	planeName, _, _ := unstructured.NestedString(cluster.Object, "spec", "controlPlaneRef", "name")
	part, err := m.part(ctx, infra, infraName, cluster)
	if part == nil || err != nil {
		return err
	}
	plane, err := m.part(ctx, planes, planeName, cluster)
	if plane == nil || err != nil {
		return err
	}
	if done, _, _ := unstructured.NestedBool(part.Object, "status", "initialization", "provisioned"); !done {
		m.did("provision infrastructure " + infraName)
		endpoint := map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)}}
		return errors.Join(m.patch(ctx, infra, infraName, map[string]any{"spec": endpoint}),
			m.status(ctx, infra, infraName, map[string]any{"initialization": map[string]any{"provisioned": true}, "conditions": conditions("Ready")}),
			m.patch(ctx, clusters, name, map[string]any{"spec": endpoint}),
			m.status(ctx, clusters, name, map[string]any{"phase": "Provisioning", "initialization": map[string]any{"infrastructureProvisioned": true}, "conditions": conditions("InfrastructureReady")}))
	}
	if err := m.secret(ctx, cluster); err != nil {
		return err
	}
	if done, _, _ := unstructured.NestedBool(plane.Object, "status", "initialization", "controlPlaneInitialized"); !done || seen(plane) {
		m.did("initialize control plane " + planeName)
		n := replicas(plane)
		return errors.Join(m.status(ctx, planes, planeName, map[string]any{
			"observedGeneration": plane.GetGeneration(), "initialization": map[string]any{"controlPlaneInitialized": true},
			"replicas": n, "readyReplicas": n, "availableReplicas": n, "upToDateReplicas": n, "conditions": conditions("Available", "Initialized"),
		}), m.status(ctx, clusters, name, map[string]any{
			"phase": "Provisioned", "initialization": map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true},
			"conditions": conditions("InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable", "RemoteConnectionProbe"),
		}))
	}
	return m.workers(ctx, cluster)
}

// seen reports whether an object has a generation that its status does not know.
func seen(u *unstructured.Unstructured) bool {
	known, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return known != u.GetGeneration()
}

// part returns a part of a cluster, which from now on is owned by it. It is nil as long as
// it does not exist; a part that existed must not go before its cluster.
func (m *ClusterController) part(ctx context.Context, of schema.GroupVersionResource, name string, cluster *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	part, err := m.api(of).Get(ctx, name, metav1.GetOptions{})
	key := "own " + of.Resource + " " + name
	if apierrors.IsNotFound(err) {
		if m.has(key) {
			now, err := m.api(clusters).Get(ctx, cluster.GetName(), metav1.GetOptions{})
			if err == nil && now.GetDeletionTimestamp() == nil {
				m.t.Errorf("%s %s was deleted before its Cluster: machines are left behind", of.Resource, name)
			}
		}
		return nil, nil
	}
	if err != nil || len(part.GetOwnerReferences()) > 0 {
		return part, err
	}
	m.did(key)
	return part, m.patch(ctx, of, name, map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": cluster.GetName(), "uid": string(cluster.GetUID()), "blockOwnerDeletion": true, "controller": of != workerSets, // as Cluster API does
	}}}})
}

// secret writes the administrator's kubeconfig of a cluster.
func (m *ClusterController) secret(ctx context.Context, cluster *unstructured.Unstructured) error {
	m.mu.Lock()
	kubeconfig := m.kubeconfig
	m.mu.Unlock()
	wanted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret", "stringData": map[string]any{"value": string(kubeconfig)},
		"metadata": map[string]any{"name": cluster.GetName() + "-kubeconfig", "labels": map[string]any{"cluster.x-k8s.io/cluster-name": cluster.GetName()}},
	}}
	_, err := m.api(secrets).Apply(ctx, wanted.GetName(), wanted, metav1.ApplyOptions{FieldManager: "machines", Force: true})
	return err
}

// workers moves the MachineDeployments of a cluster by one machine each, once there is a
// CNI plugin in the cluster: nodes without one are not ready.
func (m *ClusterController) workers(ctx context.Context, cluster *unstructured.Unstructured) error {
	found, err := m.workload.Resource(daemons).List(ctx, metav1.ListOptions{LabelSelector: "cni"})
	if err != nil {
		return err
	}
	if len(found.Items) == 0 {
		return nil
	}
	all, err := m.api(workerSets).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := true
	for i := range all.Items {
		done, err := m.roll(ctx, &all.Items[i], cluster)
		if err != nil {
			return err
		}
		ready = ready && done
	}
	now := []string{"InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable", "RemoteConnectionProbe"}
	if ready {
		now = append(now, "WorkersAvailable", "Available")
	}
	return m.status(ctx, clusters, cluster.GetName(), map[string]any{"observedGeneration": cluster.GetGeneration(), "conditions": conditions(now...)})
}

// roll moves a MachineDeployment by one machine, and reports whether all are as wanted.
func (m *ClusterController) roll(ctx context.Context, md, cluster *unstructured.Unstructured) (done bool, err error) {
	name := md.GetName()
	if _, err := m.part(ctx, workerSets, name, cluster); err != nil {
		return false, err
	}
	template, _, _ := unstructured.NestedString(md.Object, "spec", "template", "spec", "infrastructureRef", "name")
	count := func(field string) int64 { n, _, _ := unstructured.NestedInt64(md.Object, "status", field); return n }
	wanted, have, current := replicas(md), count("replicas"), count("upToDateReplicas")
	m.mu.Lock()
	former := m.rolled[name]
	m.rolled[name] = template
	if former != "" && former != template {
		current = 0
	}
	m.mu.Unlock()
	for _, used := range []string{template, former} {
		if used == "" {
			continue
		}
		if _, err := m.api(templates).Get(ctx, used, metav1.GetOptions{}); apierrors.IsNotFound(err) && have > 0 {
			m.t.Errorf("template %s was deleted while machines of %s are replaced", used, name)
		}
	}
	switch {
	case current < wanted:
		current++
		have = max(have, current)
	case have > wanted:
		have, current = have-1, have-1
	case !seen(md):
		return true, nil
	}
	m.did("move " + name)
	done = current == wanted && have == wanted
	state := []string{"RollingOut"}
	if done {
		state = []string{"Available"}
	}
	return done, m.status(ctx, workerSets, name, map[string]any{
		"observedGeneration": md.GetGeneration(), "replicas": have, "upToDateReplicas": current, "readyReplicas": have, "availableReplicas": have,
		"conditions": conditions(state...), "phase": "Running", "selector": "cluster.x-k8s.io/deployment-name=" + name,
	})
}

func replicas(u *unstructured.Unstructured) int64 {
	if n, is, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); is {
		return n
	}
	return 1
}

// remove deletes the parts of a cluster in their order: one in each step. The templates
// and the Secret with the credentials must be there until the end.
func (m *ClusterController) remove(ctx context.Context, cluster *unstructured.Unstructured) error {
	for _, f := range cluster.GetFinalizers() {
		if f == "foregroundDeletion" {
			m.t.Errorf("Cluster %s is deleted in the foreground: the garbage collector deletes its parts in any order", cluster.GetName())
		}
	}
	if left, err := m.api(templates).List(ctx, metav1.ListOptions{}); err != nil {
		return err
	} else if len(left.Items) == 0 {
		m.t.Errorf("the templates of Cluster %s were deleted before it", cluster.GetName())
	}
	for _, of := range []schema.GroupVersionResource{workerSets, planes, infra} {
		left, err := m.api(of).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(left.Items) > 0 {
			m.did("delete " + of.Resource)
			return m.api(of).Delete(ctx, left.Items[0].GetName(), metav1.DeleteOptions{})
		}
	}
	m.did("delete cluster " + cluster.GetName())
	err := m.api(secrets).Delete(ctx, cluster.GetName()+"-kubeconfig", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return m.patch(ctx, clusters, cluster.GetName(), map[string]any{"metadata": map[string]any{"finalizers": nil}})
}

func (m *ClusterController) did(step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = append(m.steps, step)
}

func (m *ClusterController) has(step string) bool {
	return slices.Contains(m.Steps(), step)
}

func (m *ClusterController) patch(ctx context.Context, of schema.GroupVersionResource, name string, change map[string]any, subresources ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = m.api(of).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return err
}

func (m *ClusterController) status(ctx context.Context, of schema.GroupVersionResource, name string, status map[string]any) error {
	return m.patch(ctx, of, name, map[string]any{"status": status}, "status")
}

// conditions returns conditions that are true.
func conditions(all ...string) []any {
	var out []any
	for _, one := range all {
		out = append(out, map[string]any{"type": one, "status": "True", "reason": one, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
	}
	return out
}
