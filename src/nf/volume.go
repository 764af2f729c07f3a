package nf

import (
	"fmt"
	"slices"
)

// SetClaims are the PersistentVolumeClaims that a StatefulSet created from its
// templates. They stay when the StatefulSet is deleted.
type SetClaims struct {
	Set    Ref
	Labels map[string]string // labels of each claim
	Claims []Ref             // sorted
}

// Volume is a PersistentVolume of a cloud region that outlives the instances that use
// it, their namespaces and their claims. Its Spec is a VolumeSpec.
type Volume = Shared

// VolumeNamespace is the namespace of a region in which claims of volumes reserve or
// provision PersistentVolumes.
const VolumeNamespace = "k8splugin-volumes"

// VolumeTable is the table of volumes in the store, and of the holds on them.
const VolumeTable = "volumes"

// LabLabel is the label of a region, with the value "true", that may have volumes in
// paths of its nodes.
const LabLabel = "k8splugin.io/lab"

// VolumeSpec is the spec of a volume.
type VolumeSpec struct {
	Source      VolumeSource `json:"source"`
	Size        string       `json:"size,omitempty"`         // a quantity; empty: that of the adopted PersistentVolume
	AccessModes []string     `json:"access_modes,omitempty"` // "ReadWriteOnce", …; empty: those of the adopted one
	Mode        string       `json:"mode,omitempty"`         // "Filesystem" or "Block"; empty: that of the adopted one
	Retention   Retention    `json:"retention"`
}

// Retention says what happens to the data of a volume that is deleted.
type Retention string

// The retentions.
const (
	RetainVolume Retention = "retain" // the PersistentVolume stays in the region, without an owner
	DeleteVolume Retention = "delete" // the PersistentVolume is deleted, with its data if a driver provisions it
)

// VolumeSource is where the data of a volume is: exactly one of the fields is set.
type VolumeSource struct {
	NFS      *ServerVolume   `json:"nfs,omitempty"`
	Local    *NodeVolume     `json:"local,omitempty"`
	HostPath *NodeVolume     `json:"host_path,omitempty"`
	CSI      *CSIVolume      `json:"csi,omitempty"`
	Class    *ClassVolume    `json:"class,omitempty"`
	Adopt    *ExistingVolume `json:"adopt,omitempty"`
}

// ServerVolume is a directory of an NFS server.
type ServerVolume struct {
	Server string `json:"server"`
	Path   string `json:"path"`
}

// NodeVolume is a path of a node. A host path without a node is that of any node.
type NodeVolume struct {
	Node string `json:"node,omitempty"`
	Path string `json:"path"`
}

// CSIVolume is a volume of a CSI driver.
type CSIVolume struct {
	Driver     string            `json:"driver"`
	Handle     string            `json:"volume_handle"`
	FSType     string            `json:"fs_type,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Secret     *SecretRef        `json:"secret,omitempty"` // for the node that mounts it
}

// SecretRef names a Secret.
type SecretRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// ClassVolume is a volume that a StorageClass provisions.
type ClassVolume struct {
	Name string `json:"name"`
	Node string `json:"node,omitempty"` // for a class that waits for the node of the first pod
}

// ExistingVolume is a PersistentVolume of the region.
type ExistingVolume struct {
	PV string `json:"pv"`
}

// VolumeStatus is a volume as its region has it. It is zero without a
// PersistentVolume.
type VolumeStatus struct {
	PV     string
	Phase  string // "Available", "Bound", "Released", …
	Size   string
	Claim  Ref    // that it is bound to, or reserved for; zero: none
	Node   string // that its data is on; empty: any
	Reason string // why the phase is Failed
}

// VolumeClaim is a claim that binds a volume.
type VolumeClaim struct {
	PV          string
	Class       string
	Size        string
	AccessModes []string
	Mode        string
}

// VolumeUse binds a claim of an instance to a volume.
type VolumeUse struct {
	Volume string `json:"volume"` // name in the instance's region
	Claim  string `json:"claim"`  // name of a PersistentVolumeClaim in the instance's namespace
}

// Binding is the use of a volume that a request or a package asks for.
type Binding struct {
	VolumeUse

	At Place
}

// AskedVolumes returns uses of volumes as a request asks for them.
func AskedVolumes(all []VolumeUse) []Binding {
	out := make([]Binding, len(all))
	for i, use := range all {
		out[i] = Binding{VolumeUse: use, At: Place{Field: fmt.Sprintf("volumes[%d]", i)}}
	}
	return out
}

// CombineBindings returns the uses of volumes of a package, and those of a request in
// addition. One of the request replaces those of the package that have its claim or its
// volume.
func CombineBindings(own, requested []Binding) []Binding {
	replaced := func(o Binding) bool {
		return slices.ContainsFunc(requested, func(r Binding) bool { return r.Claim == o.Claim || r.Volume == o.Volume })
	}
	return slices.Concat(slices.DeleteFunc(slices.Clone(own), replaced), requested)
}

// VolumeUses returns the uses of volumes of the revision's claims: those that its request
// and its package ask for.
func (r Revision) VolumeUses() []VolumeUse {
	if r.Bound != nil {
		return r.Bound
	}
	return r.Volumes
}

// VolumeUses returns the uses of volumes of the instance's claims: those that its request
// and its package ask for.
func (in Instance) VolumeUses() []VolumeUse {
	return Revision{Volumes: in.Volumes, Bound: in.Bound}.VolumeUses()
}

// MaxVolumes is how many volumes an instance may use.
const MaxVolumes = 32

// CheckBindings returns a violation for each use with a wrong name, or with one that an
// earlier use has.
func CheckBindings(all []Binding) Violations {
	var v Violations
	if len(all) > MaxVolumes {
		v = append(v, Violation{Field: "volumes", Message: fmt.Sprintf("are %d, and at most %d are allowed", len(all), MaxVolumes)})
	}
	volumes, claims := map[string]bool{}, map[string]bool{}
	for _, b := range all {
		for _, wrong := range CheckSharedName("", b.Volume, VolumeSubject) {
			v = append(v, b.At.Violation("volume", wrong.Message))
		}
		switch {
		case !isSubdomain(b.Claim):
			v = append(v, b.At.Violation("claim", fmt.Sprintf("%q is not the name of a PersistentVolumeClaim: lower-case letters, digits, '-' and '.', at most 253", Clip(b.Claim, 64))))
		case claims[b.Claim]:
			v = append(v, b.At.Violation("claim", b.Claim+" is the claim of another volume"))
		case volumes[b.Volume]:
			v = append(v, b.At.Violation("volume", b.Volume+" is bound to another claim: a PersistentVolume binds one claim"))
		}
		volumes[b.Volume], claims[b.Claim] = true, true
	}
	return v
}
