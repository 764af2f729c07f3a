package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/shared"
)

// Cluster is a cloud region, as volumes use it. For the contract of its methods, see
// lifecycle.Cluster and cluster.Cluster.
type Cluster interface {
	shared.Cluster
	Patch(ctx context.Context, ref nf.Ref, patch map[string]any) error
}

// Open opens a region. It does not dial.
type Open func(ctx context.Context, region string) (Cluster, error)

// Kind is the kind of volumes. It is safe for concurrent use.
type Kind struct {
	regions shared.Regions
	open    Open
}

var _ shared.Kind = (*Kind)(nil)

// New returns the volumes of a store, and their kind. The configuration lacks what the
// kind says, and Open.
func New(cfg shared.Config, open Open) (*shared.Resources, *Kind, error) {
	if open == nil {
		return nil, nil, errors.New("cannot create the volumes: open is required")
	}
	k := &Kind{cfg.Regions, open}
	cfg.Kind, cfg.Subject, cfg.Table, cfg.Namespace = k, nf.VolumeSubject, nf.VolumeTable, nf.VolumeNamespace
	cfg.Task = func(op *nf.Operation) *nf.SharedTask { return &op.Volume }
	cfg.Open = func(ctx context.Context, region string) (shared.Cluster, error) {
		c, err := open(ctx, region)
		if err != nil {
			return nil, err // not a nil Cluster in an interface
		}
		return c, nil
	}
	all, err := shared.New(cfg)
	return all, k, err
}

// Check implements shared.Kind.
func (k *Kind) Check(ctx context.Context, c shared.Cluster, v nf.Volume) ([]nf.Ref, error) {
	spec, err := specOf(v)
	if err != nil {
		return nil, err
	}
	refuse := func(kind nf.Kind, field, format string, args ...any) error {
		return nf.E(kind, "check", "volume "+v.Name, nf.Violations{{Field: field, Message: fmt.Sprintf(format, args...)}})
	}
	if err := k.checkNode(ctx, c, v, spec.Source, refuse); err != nil {
		return nil, err
	}
	switch s := spec.Source; {
	case s.Adopt != nil:
		return k.checkAdopted(ctx, c, v, spec, refuse)
	case s.Class != nil:
		return k.checkClass(ctx, c, v, spec, refuse)
	}
	return preflight(ctx, c, v, persistentVolume(v, spec))
}

// refusal returns an error about a field of the request.
type refusal func(kind nf.Kind, field, format string, args ...any) error

func preflight(ctx context.Context, c shared.Cluster, v nf.Volume, obj *unstructured.Unstructured) ([]nf.Ref, error) {
	owner := subjectOf(v)
	render.Tag(obj, owner)
	objects := []*unstructured.Unstructured{obj}
	_, err := c.Preflight(ctx, owner, nf.Bounds{Namespace: nf.VolumeNamespace, Tenancy: nf.Tenancy{Whole: true}}, objects)
	return shared.RefsOf(objects), err
}

// checkNode checks the node that a source names, and that the region permits a path of
// its nodes.
func (k *Kind) checkNode(ctx context.Context, c shared.Cluster, v nf.Volume, s nf.VolumeSource, refuse refusal) error {
	field, node := "", ""
	switch {
	case s.Local != nil:
		field, node = "source.local.node", s.Local.Node
	case s.Class != nil:
		field, node = "source.class.node", s.Class.Node
	case s.HostPath != nil:
		field, node = "source.host_path.node", s.HostPath.Node
		region, err := k.regions.Region(ctx, v.Region)
		if err != nil {
			return err
		}
		if region.Labels[nf.LabLabel] != "true" {
			return refuse(nf.Forbidden, "source.host_path", "is possible only in a cloud region with the label %s=true, because it gives access to the files of its nodes", nf.LabLabel)
		}
	}
	if node == "" {
		return nil
	}
	there, err := c.Lookup(ctx, nf.Ref{Version: "v1", Kind: "Node", Name: node})
	if err == nil && there == nil {
		err = refuse(nf.Invalid, field, "cloud region %s has no node %q", v.Region, node)
	}
	return err
}

// checkClass checks that a class can provision a volume, or make it grow.
func (k *Kind) checkClass(ctx context.Context, c shared.Cluster, v nf.Volume, spec nf.VolumeSpec, refuse refusal) ([]nf.Ref, error) {
	name := spec.Source.Class.Name
	class, err := lookup(ctx, c, nf.Ref{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass", Name: name})
	if err != nil {
		return nil, err
	}
	if class == nil {
		return nil, refuse(nf.Invalid, "source.class.name", "cloud region %s has no storage class %q", v.Region, name)
	}
	if pv := volumeOf(v, spec); pv.Name != "" {
		return []nf.Ref{pv}, k.checkGrowth(ctx, c, pv, spec, refuse)
	}
	text := func(field string) string { return live{class}.text(field) }
	switch {
	case text("provisioner") == "kubernetes.io/no-provisioner":
		return nil, refuse(nf.Invalid, "source.class.name", "storage class %s provisions nothing; use another source", name)
	case text("volumeBindingMode") == "WaitForFirstConsumer" && spec.Source.Class.Node == "":
		return nil, refuse(nf.Invalid, "source.class.node", "is required: storage class %s provisions a volume only for a node", name)
	}
	return preflight(ctx, c, v, provisioningClaim(v, spec))
}

// checkAdopted checks that a PersistentVolume can become a volume.
func (k *Kind) checkAdopted(ctx context.Context, c shared.Cluster, v nf.Volume, spec nf.VolumeSpec, refuse refusal) ([]nf.Ref, error) {
	const field = "source.adopt.pv"
	pv := volumeRef(spec.Source.Adopt.PV)
	there, err := lookup(ctx, c, pv)
	if err != nil {
		return nil, err
	}
	if there == nil {
		return nil, refuse(nf.Invalid, field, "cloud region %s has no PersistentVolume %q", v.Region, pv.Name)
	}
	l := live{there}
	project := l.GetAnnotations()[nf.ProjectAnnotation]
	switch owner := nf.OwnerOf(l.GetLabels()); {
	case l.ours(v):
		return []nf.Ref{pv}, k.checkGrowth(ctx, c, pv, spec, refuse)
	case owner.ID != "":
		return nil, refuse(nf.Conflict, field, "PersistentVolume %s belongs to another object of this service", pv.Name)
	case project != "" && project != nf.ProjectOf(v.Project):
		return nil, refuse(nf.Conflict, field, "PersistentVolume %s was retained from another project", pv.Name)
	case spec.Size != "" && spec.Size != l.size():
		return nil, refuse(nf.Conflict, "size", "PersistentVolume %s has the size %s", pv.Name, l.size())
	}
	if claim, bound, err := boundTo(ctx, c, l); err != nil || bound {
		return nil, cmp.Or(err, refuse(nf.Conflict, field, "PersistentVolume %s is bound to the claim %s of namespace %s", pv.Name, claim.Name, claim.Namespace))
	}
	return []nf.Ref{pv}, nil
}

// checkGrowth checks that a PersistentVolume that a class has provisioned can get the
// size of the spec.
func (k *Kind) checkGrowth(ctx context.Context, c shared.Cluster, pv nf.Ref, spec nf.VolumeSpec, refuse refusal) error {
	there, err := lookup(ctx, c, pv)
	if err != nil || there == nil {
		return err
	}
	l := live{there}
	if !smaller(l.size(), spec.Size) || l.class() == "" {
		return nil
	}
	class, err := lookup(ctx, c, nf.Ref{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass", Name: l.class()})
	if err != nil {
		return err
	}
	if class == nil || class.Object["allowVolumeExpansion"] != true {
		return refuse(nf.Invalid, "size", "storage class %s does not allow that its volumes grow", l.class())
	}
	_, bound, err := boundTo(ctx, c, l)
	if err == nil && !bound {
		err = refuse(nf.Conflict, "size", "the volume can grow only while a claim is bound to it: use it in an instance first")
	}
	return err
}

// Refs implements shared.Kind.
func (k *Kind) Refs(v nf.Volume) ([]nf.Ref, error) {
	spec, err := specOf(v)
	if err != nil {
		return nil, err
	}
	if pv := volumeOf(v, spec); pv.Name != "" {
		return []nf.Ref{pv}, nil
	}
	return nil, nil
}

// volumeOf returns the PersistentVolume of a volume. Its name is empty if the volume
// has none yet.
func volumeOf(v nf.Volume, spec nf.VolumeSpec) nf.Ref {
	switch {
	case spec.Source.Adopt != nil:
		return volumeRef(spec.Source.Adopt.PV)
	case spec.Source.Class == nil:
		return volumeRef("k8splugin-" + v.Name)
	}
	for _, ref := range v.Inventory {
		if ref.Kind == "PersistentVolume" {
			return ref
		}
	}
	return nf.Ref{}
}

// lookup returns an object, or nil.
func lookup(ctx context.Context, c shared.Cluster, ref nf.Ref) (*unstructured.Unstructured, error) {
	object, err := c.Lookup(ctx, ref)
	if err != nil || object == nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// boundTo returns the claim that a PersistentVolume is bound to. Bound is false if it
// is bound to none that exists.
func boundTo(ctx context.Context, c shared.Cluster, l live) (claim nf.Ref, bound bool, err error) {
	claim, uid := l.claim()
	if uid == "" {
		return claim, false, nil
	}
	there, err := lookup(ctx, c, claim)
	return claim, err == nil && there != nil && string(there.GetUID()) == uid, err
}
