package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Scaling returns the settings that give the owner's objects their numbers of
// replicas, in the given order. The number is that of the object's scale
// subresource, or the field at Scaling.Path. It returns the first error:
//
//   - nf.NotFound if an object does not exist;
//   - nf.Conflict if it belongs to another owner, or if something else sets its
//     number: a controller that owns the object, an autoscaler, Cluster API, or,
//     unless force is set, a client that has used the scale subresource;
//   - nf.Unsupported if it has no number of replicas;
//   - nf.Invalid if the number would be negative or above nf.MaxReplicas;
//   - nf.Failed if a permission is missing.
func (c *Cluster) Scaling(ctx context.Context, owner nf.Subject, wanted []nf.Scaling, force bool) ([]nf.Setting, error) {
	refs := make([]nf.Ref, len(wanted))
	for i, s := range wanted {
		refs[i] = s.Ref
	}
	targets, err := c.client.apis.resolveAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	ks, err := c.client.apis.kinds(ctx, nil)
	if err != nil {
		return nil, err
	}
	found := map[string]func() (autoscalers, error){} // by namespace
	for _, ref := range refs {
		if found[ref.Namespace] == nil {
			found[ref.Namespace] = sync.OnceValues(func() (autoscalers, error) { return autoscalersIn(ctx, c.client, ks, ref.Namespace) })
		}
	}
	out := make([]nf.Setting, len(wanted))
	err = each(c.client.parallel, len(wanted), func(i int) (err error) {
		s := scaler{liveObject{client: c.client, owner: owner, target: targets[i]}, c.service, ks, found[refs[i].Namespace]}
		out[i], err = s.setting(ctx, wanted[i], force)
		return err
	})
	return out, err
}

// scaler finds the number of replicas of an object, and its owner.
type scaler struct {
	object  liveObject
	service *client // reads definitions
	kinds   *kinds
	found   func() (autoscalers, error) // in its namespace
}

func (s scaler) setting(ctx context.Context, wanted nf.Scaling, force bool) (nf.Setting, error) {
	out := nf.Setting{Ref: wanted.Ref, Path: wanted.Path, Scale: wanted.Path == ""}
	live, err := s.object.read(ctx, "scale")
	if err != nil {
		return out, err
	}
	if err := s.unowned(live, force); err != nil {
		return out, err
	}
	present, err := s.present(ctx, live, &out)
	if err != nil {
		return out, err
	}
	number := present + wanted.By
	if wanted.Replicas != nil {
		number = *wanted.Replicas
	}
	if number < 0 || number > nf.MaxReplicas {
		return out, s.refuse(nf.Invalid, fmt.Sprintf("has %d replicas: %+d would be %d", present, wanted.By, number))
	}
	out.Was, out.Value = json.RawMessage(fmt.Sprint(present)), json.RawMessage(fmt.Sprint(number))
	return out, nil
}

// refuse returns an error about the object.
func (s scaler) refuse(kind nf.Kind, message string) error {
	return nf.E(kind, "scale", "workloads", nf.Violations{{Object: s.object.target.ref, Message: message}})
}

// present returns the object's number of replicas, and completes the path of the
// setting.
func (s scaler) present(ctx context.Context, live *unstructured.Unstructured, out *nf.Setting) (int64, error) {
	if !out.Scale {
		value, _ := nf.At(live.Object, out.Path)
		number, ok := value.(int64)
		if !ok {
			return 0, s.refuse(nf.Invalid, fmt.Sprintf("has no number at %s", out.Path))
		}
		return number, nil
	}
	var scale struct {
		Spec struct {
			Replicas int64 `json:"replicas"`
		} `json:"spec"`
	}
	_, err := s.object.client.send(ctx, func() *rest.Request {
		return s.object.client.request("GET", s.object.target).SubResource("scale")
	}, into(&scale))
	if apierrors.IsNotFound(err) {
		return 0, s.refuse(nf.Unsupported, "has no scale subresource; give the path to its number of replicas")
	}
	if err != nil {
		return 0, s.object.client.region.failObject(ctx, "read the scale of", s.object.target.ref, err)
	}
	out.Path, err = s.replicasPath(ctx)
	return scale.Spec.Replicas, err
}

// replicasPath returns the JSON pointer to the number that the scale subresource
// reads and writes.
func (s scaler) replicasPath(ctx context.Context) (string, error) {
	k := s.object.target.kind
	if k.Group == "apps" || k.Group == "" {
		return replicasPath, nil
	}
	ref := nf.Ref{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: k.resource + "." + k.Group}
	definitions, _ := s.kinds.any(gvkOf(ref))
	var crd struct {
		Spec struct {
			Versions []struct {
				Name         string `json:"name"`
				Subresources struct {
					Scale struct {
						SpecReplicasPath string `json:"specReplicasPath"`
					} `json:"scale"`
				} `json:"subresources"`
			} `json:"versions"`
		} `json:"spec"`
	}
	err := s.service.get(ctx, target{ref, definitions, true}, &crd)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", s.object.client.region.failObject(ctx, "read", ref, err)
	}
	for _, version := range crd.Spec.Versions {
		if path := version.Subresources.Scale.SpecReplicasPath; version.Name == k.Version && path != "" {
			return strings.ReplaceAll(path, ".", "/"), nil
		}
	}
	return "", s.refuse(nf.Unsupported, "has a scale subresource, but no definition says which field it changes; give the path to its number of replicas")
}

// unowned returns nf.Conflict if something else sets the object's number of replicas.
func (s scaler) unowned(live *unstructured.Unstructured, force bool) error {
	if owner := metav1.GetControllerOf(live); owner != nil && !isCluster(owner) {
		return s.refuse(nf.Conflict, fmt.Sprintf("is controlled by %s %s, which sets its number of replicas: scale that", owner.Kind, owner.Name))
	}
	if message := ofClusterAPI(live); message != "" {
		return s.refuse(nf.Conflict, message)
	}
	found, err := s.found()
	if err != nil {
		return err
	}
	if by, ok := found.of(s.object.target.ref); ok {
		return s.refuse(nf.Conflict, fmt.Sprintf("is scaled by %s %s: change that instead", by.Kind, by.Name))
	}
	for _, f := range live.GetManagedFields() {
		if f.Subresource == "scale" && f.Manager != manager(s.object.owner) && !force {
			return s.refuse(nf.Conflict, fmt.Sprintf("was scaled by the client %s; set force to replace its number", f.Manager))
		}
	}
	return nil
}

// isCluster reports whether an owner is a Cluster of Cluster API, which sets the numbers
// of replicas of its parts only if it has a topology.
func isCluster(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == nf.ClusterGroup && owner.Kind == "Cluster"
}

// ofClusterAPI says that Cluster API sets the number of replicas of an object; empty:
// it does not.
func ofClusterAPI(live *unstructured.Unstructured) string {
	if _, owned := live.GetLabels()["topology.cluster.x-k8s.io/owned"]; owned {
		return "is part of the topology of a Cluster, which sets its number of replicas: change spec.topology of the Cluster"
	}
	for _, key := range [...]string{"cluster.x-k8s.io/replicas-managed-by", "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"} {
		if by, managed := live.GetAnnotations()[key]; managed {
			return fmt.Sprintf("has the annotation %s=%s: an autoscaler sets its number of replicas", key, by)
		}
	}
	return ""
}

// autoscalerKinds are the kinds whose spec.scaleTargetRef names the object that they
// scale. KEDA makes HorizontalPodAutoscalers, so that its own kind comes first.
var autoscalerKinds = [...]schema.GroupVersionKind{
	{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
}

// autoscalers are the autoscalers of a namespace.
type autoscalers []autoscaler

type autoscaler struct {
	nf.Ref

	owner  nf.Subject
	target nf.Ref // without a version
}

// of returns the autoscaler of an object.
func (all autoscalers) of(ref nf.Ref) (nf.Ref, bool) {
	for _, a := range all {
		if a.target.Group == ref.Group && a.target.Kind == ref.Kind && a.target.Name == ref.Name && a.Namespace == ref.Namespace {
			return a.Ref, true
		}
	}
	return nf.Ref{}, false
}

// autoscalersIn returns the autoscalers in a namespace.
func autoscalersIn(ctx context.Context, c *client, ks *kinds, namespace string) (autoscalers, error) {
	var out autoscalers
	for _, gvk := range autoscalerKinds {
		k, served := ks.any(gvk)
		if !served || namespace == "" {
			continue
		}
		found, err := c.whole(ctx, k.in(namespace), query{})
		if err != nil {
			return nil, c.region.fail(ctx, "list", k.Kind+" objects", err)
		}
		for i := range found.items {
			if a, ok := autoscalerOf(&found.items[i]); ok {
				out = append(out, a)
			}
		}
		found.release()
	}
	return out, nil
}

// autoscalerOf returns an autoscaler; ok is false for an object of another kind.
func autoscalerOf(u *unstructured.Unstructured) (a autoscaler, ok bool) {
	ref := nf.RefOf(u)
	for _, gvk := range autoscalerKinds {
		ok = ok || gvk.Group == ref.Group && gvk.Kind == ref.Kind
	}
	to, _, err := unstructured.NestedMap(u.Object, "spec", "scaleTargetRef")
	if !ok || err != nil {
		return a, false
	}
	of := func(field, otherwise string) string {
		if value, isText := to[field].(string); isText && value != "" {
			return value
		}
		return otherwise
	}
	gv, err := schema.ParseGroupVersion(of("apiVersion", "apps/v1")) // the defaults are those of KEDA
	target := nf.Ref{Group: gv.Group, Kind: of("kind", "Deployment"), Namespace: ref.Namespace, Name: of("name", "")}
	return autoscaler{ref, nf.OwnerOf(u.GetLabels()), target}, err == nil
}

// Restarting returns the settings that restart the pods of the owner's objects, in
// the given order. It returns the first error: nf.NotFound, nf.Conflict or nf.Failed
// as Scaling does; nf.Unsupported for an object that does not replace its pods one
// after another; nf.Conflict for a paused Deployment. For a virtual machine, it fails as
// Machines does.
func (c *Cluster) Restarting(ctx context.Context, owner nf.Subject, refs []nf.Ref, value json.RawMessage) ([]nf.Setting, error) {
	targets, err := c.client.apis.resolveAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	var found machines
	if slices.ContainsFunc(refs, isMachine) {
		found, err = machinesOf(ctx, c.client)
	}
	if err != nil {
		return nil, err
	}
	out := make([]nf.Setting, len(refs))
	err = each(c.client.parallel, len(refs), func(i int) (err error) {
		object := liveObject{c.client, owner, targets[i]}
		if isMachine(refs[i]) {
			out[i], err = found.setting(ctx, object, nf.Restart)
			return err
		}
		live, err := object.read(ctx, "restart")
		if err != nil {
			return err
		}
		if err := rolls(refs[i], live); err != nil {
			return err
		}
		is, _ := nf.At(live.Object, nf.RestartPath)
		was, err := nf.RawOf(is)
		out[i] = nf.Setting{Ref: refs[i], Path: nf.RestartPath, Value: value, Was: was}
		return err
	})
	return out, err
}

// rolls returns an error if an object does not replace its pods after a change of
// their template.
func rolls(ref nf.Ref, live *unstructured.Unstructured) error {
	strategy, _ := nf.At(live.Object, "/spec/updateStrategy/type")
	paused, _ := nf.At(live.Object, "/spec/paused")
	switch {
	case ref.Group != "apps" || ref.Kind != "Deployment" && ref.Kind != "StatefulSet" && ref.Kind != "DaemonSet":
		return nf.E(nf.Unsupported, "restart", ref.String(), errors.New("only a Deployment, a StatefulSet, a DaemonSet or a VirtualMachine can be restarted"))
	case strategy == "OnDelete":
		return nf.E(nf.Unsupported, "restart", ref.String(), errors.New("its update strategy is OnDelete: it replaces its pods only after they are deleted"))
	case paused == true:
		return nf.E(nf.Conflict, "restart", ref.String(), errors.New("it is paused"))
	}
	return nil
}
