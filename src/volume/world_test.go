package volume_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/shared"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
	"github.com/multicloud-k8s/k8splugin/src/volume"
)

// world is a store, and the regions edge, which is a lab, and plain. They have the same
// objects, and bind and provision volumes as Kubernetes does.
type world struct {
	kv     store.KV
	ledger *operation.Ledger

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by Ref.Key
	refused bool                      // the region refuses new PersistentVolumes
	erased  []string                  // PersistentVolumes whose data was deleted
}

func newWorld() *world {
	w := &world{kv: memory.New(), objects: map[string]map[string]any{}}
	for _, name := range []string{"n1", "n2"} {
		w.put(map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name}})
	}
	for name, class := range map[string]map[string]any{
		"fast":   {"provisioner": "disks.example", "allowVolumeExpansion": true},
		"fixed":  {"provisioner": "disks.example"},
		"late":   {"provisioner": "disks.example", "volumeBindingMode": "WaitForFirstConsumer"},
		"static": {"provisioner": "kubernetes.io/no-provisioner"},
	} {
		class["apiVersion"], class["kind"], class["metadata"] = "storage.k8s.io/v1", "StorageClass", map[string]any{"name": name}
		w.put(class)
	}
	return w
}

type config struct {
	shared.Config
	Work operation.Config
	Open volume.Open
}

// start runs a replica until the test ends or the returned function is called.
func (w *world) start(t *testing.T, edit ...func(*config)) (all *shared.Resources, kind *volume.Kind, stop func()) {
	t.Helper()
	cfg := config{Config: shared.Config{KV: w.kv, Regions: w}, Open: w.open(w)}
	for _, f := range edit {
		f(&cfg)
	}
	cfg.Work.KV, cfg.Work.NewID = cfg.KV, rand.Text
	work, err := operation.New(cfg.Work)
	must(t, err)
	cfg.Workers, w.ledger = work, work.Ledger()
	all, kind, err = volume.New(cfg.Config, cfg.Open)
	must(t, err)
	return all, kind, operationtest.Run(t, work)
}

func (w *world) open(c volume.Cluster) volume.Open {
	return func(context.Context, string) (volume.Cluster, error) { return c, nil }
}

func (w *world) Region(_ context.Context, id string) (nf.Region, error) {
	switch id {
	case "edge":
		return nf.Region{ID: id, Labels: map[string]string{nf.LabLabel: "true"}}, nil
	case "plain":
		return nf.Region{ID: id}, nil
	}
	return nf.Region{}, nf.E(nf.NotFound, "get", "cloud region "+id, nil)
}

func (w *world) Hold(context.Context, nf.Holding) error    { return nil }
func (w *world) Release(context.Context, nf.Holding) error { return nil }

func (w *world) Preflight(_ context.Context, owner nf.Subject, _ nf.Bounds, objects []*unstructured.Unstructured) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, obj := range objects {
		if there := w.objects[nf.RefOf(obj).Key()]; there != nil && ownerOf(there) != owner {
			return 0, nf.E(nf.Conflict, "apply", nf.RefOf(obj).String(), fmt.Errorf("it is not ours"))
		}
	}
	return 0, nil
}

// Served is not called for volumes.
func (w *world) Served(context.Context, []nf.Ref) ([]nf.Ref, error) {
	return nil, nf.E(nf.Unsupported, "look up", "kinds", nil)
}

func (w *world) Lookup(_ context.Context, ref nf.Ref) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if there := w.objects[ref.Key()]; there != nil {
		return (&unstructured.Unstructured{Object: there}).DeepCopy().Object, nil
	}
	return nil, nil
}

func (w *world) EnsureNamespace(context.Context, string, string) (nf.Namespace, error) {
	return nf.Namespace{Created: true}, nil
}

func (w *world) Apply(_ context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []nf.Change
	for _, obj := range objects {
		if w.refused && obj.GetKind() == "PersistentVolume" {
			return out, nf.E(nf.Failed, "apply", obj.GetName(), fmt.Errorf("the quota is exceeded"))
		}
		if got := nf.OwnerOf(obj.GetLabels()); got != owner {
			return nil, fmt.Errorf("the object is labelled for %s", got)
		}
		if w.objects[nf.RefOf(obj).Key()] == nil {
			w.put(obj.DeepCopy().Object)
		}
		out = append(out, nf.Change{Ref: nf.RefOf(obj), Action: nf.Created})
	}
	w.control()
	return out, nil
}

func (w *world) Delete(_ context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []nf.Change
	for _, ref := range refs {
		action := nf.Unchanged
		if there := w.objects[ref.Key()]; there != nil && ownerOf(there) == owner {
			action = nf.Deleted
			delete(w.objects, ref.Key())
		}
		out = append(out, nf.Change{Ref: ref, Action: action})
	}
	w.control()
	return out, nil
}

func (w *world) Patch(_ context.Context, ref nf.Ref, patch map[string]any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	there := w.objects[ref.Key()]
	metadata := patch["metadata"].(map[string]any)
	if there == nil || metadata["resourceVersion"] != there["metadata"].(map[string]any)["resourceVersion"] {
		return nf.E(nf.Conflict, "patch", ref.String(), fmt.Errorf("it has changed"))
	}
	raw, err := json.Marshal(patch) // as it is sent
	if err != nil {
		return err
	}
	var sent map[string]any
	if err := json.Unmarshal(raw, &sent); err != nil {
		return err
	}
	merge(there, sent)
	w.put(there)
	w.control()
	return nil
}

// merge merges a JSON merge patch into an object.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		below, ok := value.(map[string]any)
		switch has, both := into[key].(map[string]any); {
		case value == nil:
			delete(into, key)
		case ok && both:
			merge(has, below)
		case ok:
			into[key] = map[string]any{}
			merge(into[key].(map[string]any), below)
		default:
			into[key] = value
		}
	}
}

func (w *world) Watch(_ context.Context, _ nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error] {
	return func(yield func(nf.Health, error) bool) {
		for _, target := range targets {
			w.mu.Lock()
			_, there := w.objects[target.Key()]
			w.mu.Unlock()
			h := nf.Health{Ref: target.Ref, Status: nf.Absent}
			if there {
				h.Status = nf.Current
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}

// put stores an object with a new resourceVersion, and a uid.
func (w *world) put(object map[string]any) {
	w.version++
	obj := &unstructured.Unstructured{Object: object}
	obj.SetResourceVersion(fmt.Sprint(w.version))
	if obj.GetUID() == "" {
		_ = unstructured.SetNestedField(object, fmt.Sprintf("uid-%d", w.version), "metadata", "uid")
	}
	w.objects[nf.RefOf(obj).Key()] = object
}

// control does what the controller of volumes does in Kubernetes.
func (w *world) control() {
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		claim := &unstructured.Unstructured{Object: w.objects[key]}
		class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
		if claim.GetKind() != "PersistentVolumeClaim" || class == "" || text(claim.Object, "spec", "volumeName") != "" {
			continue
		}
		if reserved := w.reserved(claim); reserved != "" {
			_ = unstructured.SetNestedField(claim.Object, reserved, "spec", "volumeName")
			w.put(claim.Object)
			continue
		}
		name := "pvc-" + string(claim.GetUID())
		w.put(map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": name, "annotations": map[string]any{"pv.kubernetes.io/provisioned-by": "disks.example"}},
			"spec": map[string]any{
				"capacity": map[string]any{"storage": text(claim.Object, "spec", "resources", "requests", "storage")}, "storageClassName": class,
				"persistentVolumeReclaimPolicy": "Delete", "accessModes": []any{"ReadWriteOnce"}, "volumeMode": "Filesystem",
				"claimRef": map[string]any{"kind": "PersistentVolumeClaim", "namespace": claim.GetNamespace(), "name": claim.GetName(), "uid": string(claim.GetUID())},
			},
		})
		_ = unstructured.SetNestedField(claim.Object, name, "spec", "volumeName")
		w.put(claim.Object)
	}
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		if pv := w.objects[key]; pv["kind"] == "PersistentVolume" {
			w.bind(pv)
		}
	}
}

// reserved returns the PersistentVolume that is reserved for a claim: Kubernetes binds it
// before it has the class provision one.
func (w *world) reserved(claim *unstructured.Unstructured) string {
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		pv := w.objects[key]
		if pv["kind"] == "PersistentVolume" && text(pv, "spec", "claimRef", "uid") == "" &&
			text(pv, "spec", "claimRef", "namespace") == claim.GetNamespace() && text(pv, "spec", "claimRef", "name") == claim.GetName() {
			return text(pv, "metadata", "name")
		}
	}
	return ""
}

// bind binds a PersistentVolume to the claim that it is reserved for, or reclaims it.
func (w *world) bind(pv map[string]any) {
	phase := "Available"
	if name := text(pv, "spec", "claimRef", "name"); name != "" {
		ref := nf.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: text(pv, "spec", "claimRef", "namespace"), Name: name}
		claim, uid := w.objects[ref.Key()], text(pv, "spec", "claimRef", "uid")
		switch {
		case claim == nil && uid != "":
			phase = "Released"
		case claim != nil && (uid == "" || uid == text(claim, "metadata", "uid")):
			phase = "Bound"
			_ = unstructured.SetNestedField(pv, text(claim, "metadata", "uid"), "spec", "claimRef", "uid")
		}
	}
	_ = unstructured.SetNestedField(pv, phase, "status", "phase")
	if phase == "Released" && text(pv, "spec", "persistentVolumeReclaimPolicy") == "Delete" {
		obj := &unstructured.Unstructured{Object: pv}
		delete(w.objects, nf.RefOf(obj).Key())
		w.erased = append(w.erased, obj.GetName())
		return
	}
	w.put(pv)
}

// claim creates the claim of an instance.
func (w *world) claim(namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "10Gi"}}},
	})
	w.control()
}

// unclaim deletes the claim of an instance.
func (w *world) unclaim(namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.objects, nf.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}.Key())
	w.control()
}

// left returns the PersistentVolumes and claims in the region: "k8splugin-data Retain
// Bound default/data".
func (w *world) left() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, object := range w.objects {
		switch object["kind"] {
		case "PersistentVolume":
			owned := ""
			if ownerOf(object).ID != "" {
				owned = " of " + ownerOf(object).ID
			}
			out = append(out, strings.Join([]string{text(object, "metadata", "name"), text(object, "spec", "persistentVolumeReclaimPolicy"), text(object, "status", "phase"),
				text(object, "spec", "claimRef", "namespace") + "/" + text(object, "spec", "claimRef", "name")}, " ")+owned)
		case "PersistentVolumeClaim":
			out = append(out, "claim "+text(object, "metadata", "namespace")+"/"+text(object, "metadata", "name"))
		}
	}
	slices.Sort(out)
	return out
}

func text(object map[string]any, path ...string) string {
	text, _, _ := unstructured.NestedString(object, path...)
	return text
}

func ownerOf(object map[string]any) nf.Subject {
	return nf.OwnerOf((&unstructured.Unstructured{Object: object}).GetLabels())
}

const data = "edge.data"

const nfs = `{"source":{"nfs":{"server":"10.0.0.1","path":"/export"}},"size":"10Gi"}`

// request returns a request for the volume "data" with a spec.
func request(spec string, edit ...func(*nf.SharedRequest)) nf.SharedRequest {
	req := nf.SharedRequest{Resource: nf.Volume{Name: "data", Region: "edge", Spec: json.RawMessage(spec)}, Holder: "ann"}
	for _, f := range edit {
		f(&req)
	}
	return req
}

// create creates a volume, and waits for the end of the operation.
func (w *world) create(t *testing.T, all *shared.Resources, req nf.SharedRequest) nf.Operation {
	t.Helper()
	op, err := all.Create(t.Context(), req)
	must(t, err)
	return w.end(t, op)
}

// end waits until an operation ends, and returns it.
func (w *world) end(t *testing.T, op nf.Operation) nf.Operation {
	t.Helper()
	for now, err := range w.ledger.Follow(t.Context(), op.ID) {
		must(t, err)
		op = now
	}
	synctest.Wait()
	return op
}

func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
