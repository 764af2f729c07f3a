package volume

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Label is on the PersistentVolume of a volume, also after the volume was deleted and
// its data retained. Its value is the name of the volume.
const Label = "k8splugin.io/volume"

// provisionedBy is the annotation that says which driver deletes the data of a
// PersistentVolume.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

func volumeRef(name string) nf.Ref {
	return nf.Ref{Version: "v1", Kind: "PersistentVolume", Name: name}
}

func claimRef(namespace, name string) nf.Ref {
	return nf.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}
}

// ownClaim is the claim that provisions a volume, or, if it does not exist, reserves it.
func ownClaim(v nf.Volume) nf.Ref { return claimRef(nf.VolumeNamespace, v.Name) }

// reservation returns the claimRef that reserves a PersistentVolume for a claim.
func reservation(claim nf.Ref) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.Namespace, "name": claim.Name}
}

// subjectOf returns a volume as the owner of its objects.
func subjectOf(v nf.Volume) nf.Subject { return nf.Subject{Kind: nf.VolumeSubject, ID: v.ID} }

// marks are the labels and annotations of the PersistentVolume of a volume.
func marks(v nf.Volume) (labels, annotations map[string]any) {
	return map[string]any{Label: v.Name}, map[string]any{nf.ProjectAnnotation: nf.ProjectOf(v.Project)}
}

// persistentVolume returns the PersistentVolume of a volume whose source is neither a
// class nor an existing one.
func persistentVolume(v nf.Volume, spec nf.VolumeSpec) *unstructured.Unstructured {
	labels, annotations := marks(v)
	fields := map[string]any{
		"capacity": map[string]any{"storage": spec.Size}, "accessModes": texts(spec.AccessModes), "volumeMode": spec.Mode,
		"persistentVolumeReclaimPolicy": "Retain", "claimRef": reservation(ownClaim(v)),
	}
	node := ""
	switch s := spec.Source; {
	case s.NFS != nil:
		fields["nfs"] = map[string]any{"server": s.NFS.Server, "path": s.NFS.Path}
	case s.Local != nil:
		fields["local"], node = map[string]any{"path": s.Local.Path}, s.Local.Node
	case s.HostPath != nil:
		fields["hostPath"], node = map[string]any{"path": s.HostPath.Path, "type": "DirectoryOrCreate"}, s.HostPath.Node
	default:
		fields["csi"] = csiOf(*s.CSI)
	}
	if node != "" {
		on := map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []any{node}}
		fields["nodeAffinity"] = map[string]any{"required": map[string]any{"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{on}}}}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": map[string]any{"name": "k8splugin-" + v.Name, "labels": labels, "annotations": annotations}, "spec": fields,
	}}
}

func csiOf(s nf.CSIVolume) map[string]any {
	out := map[string]any{"driver": s.Driver, "volumeHandle": s.Handle}
	if s.FSType != "" {
		out["fsType"] = s.FSType
	}
	if len(s.Attributes) > 0 {
		attributes := map[string]any{}
		for name, value := range s.Attributes {
			attributes[name] = value
		}
		out["volumeAttributes"] = attributes
	}
	if s.Secret != nil {
		secret := map[string]any{"namespace": s.Secret.Namespace, "name": s.Secret.Name}
		out["nodeStageSecretRef"], out["nodePublishSecretRef"] = secret, secret
	}
	return out
}

// provisioningClaim returns the claim whose class provisions a volume.
func provisioningClaim(v nf.Volume, spec nf.VolumeSpec) *unstructured.Unstructured {
	metadata := map[string]any{"namespace": nf.VolumeNamespace, "name": v.Name}
	if node := spec.Source.Class.Node; node != "" {
		metadata["annotations"] = map[string]any{"volume.kubernetes.io/selected-node": node}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
		"spec": map[string]any{
			"storageClassName": spec.Source.Class.Name, "accessModes": texts(spec.AccessModes), "volumeMode": spec.Mode,
			"resources": map[string]any{"requests": map[string]any{"storage": spec.Size}},
		},
	}}
}

func texts(all []string) []any {
	out := make([]any, len(all))
	for i, text := range all {
		out[i] = text
	}
	return out
}

// live is a PersistentVolume as its region has it.
type live struct{ *unstructured.Unstructured }

func (l live) text(path ...string) string {
	text, _, _ := unstructured.NestedString(l.Object, path...)
	return text
}

// claim returns the claim that it is bound to, with its uid, or reserved for, without.
func (l live) claim() (claim nf.Ref, uid string) {
	if name := l.text("spec", "claimRef", "name"); name != "" {
		claim = claimRef(l.text("spec", "claimRef", "namespace"), name)
	}
	return claim, l.text("spec", "claimRef", "uid")
}

func (l live) size() string  { return l.text("spec", "capacity", "storage") }
func (l live) class() string { return l.text("spec", "storageClassName") }

// ours reports whether it belongs to a volume.
func (l live) ours(v nf.Volume) bool {
	return nf.OwnerOf(l.GetLabels()) == subjectOf(v)
}

// node returns the node that its data is on; empty: any, or one of several.
func (l live) node() string {
	terms, _, _ := unstructured.NestedSlice(l.Object, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
	if len(terms) != 1 {
		return ""
	}
	term, _ := terms[0].(map[string]any)
	expressions, _, _ := unstructured.NestedSlice(term, "matchExpressions")
	for _, e := range expressions {
		expression, _ := e.(map[string]any)
		values, _, _ := unstructured.NestedStringSlice(expression, "values")
		if expression["key"] == "kubernetes.io/hostname" && len(values) == 1 {
			return values[0]
		}
	}
	return ""
}
