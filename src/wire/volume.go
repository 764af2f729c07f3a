package wire

import (
	"cmp"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Volume is a volume.
type Volume struct {
	VolumeEdit

	ID         string            `json:"volume_id"`
	Name       string            `json:"name"`
	Region     string            `json:"cloud_region_id"`
	Project    string            `json:"project"`
	State      nf.SharedState    `json:"state"`
	Message    string            `json:"message,omitempty"`
	UseCount   *int              `json:"use_count,omitempty"`   // not in lists
	Users      []Subject         `json:"users,omitempty"`       // not in lists
	PV         string            `json:"pv,omitempty"`          // not in lists
	Phase      string            `json:"phase,omitempty"`       // not in lists
	ActualSize string            `json:"size_actual,omitempty"` // not in lists
	Claim      *Claim            `json:"claim,omitempty"`       // not in lists
	Node       string            `json:"node,omitempty"`        // not in lists
	Refs       []Ref             `json:"refs"`
	Operation  string            `json:"operation_id,omitempty"` // the last one
	Links      map[string]string `json:"links"`
	Created    time.Time         `json:"created_at"`
	Updated    time.Time         `json:"updated_at"`
}

// Claim is a PersistentVolumeClaim.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// VolumeOf converts a volume with a spec.
func VolumeOf(v nf.Volume, spec nf.VolumeSpec) Volume {
	return Volume{
		VolumeEdit: VolumeEditOf(v, spec), ID: v.ID, Name: v.Name, Region: v.Region, Project: nf.ProjectOf(v.Project),
		State: v.State, Message: v.Failure.String(), Operation: v.Last, Refs: List(v.Inventory, RefOf),
		Links: map[string]string{
			"self": VolumePath(v.ID), "cloud_region": RegionPath(v.Region), "operations": "/v1/operations?subject=volume/" + v.ID,
		},
		Created: v.Created, Updated: v.Updated,
	}
}

// With returns the volume with its users.
func (v Volume) With(count int, users []nf.Subject) Volume {
	v.UseCount, v.Users = &count, List(users, func(s nf.Subject) Subject { return Subject(s) })
	return v
}

// As returns the volume as its region has it.
func (v Volume) As(s nf.VolumeStatus) Volume {
	v.PV, v.Phase, v.ActualSize, v.Node = s.PV, s.Phase, s.Size, s.Node
	if s.Claim.Name != "" {
		v.Claim = &Claim{s.Claim.Namespace, s.Claim.Name}
	}
	if v.Message == "" {
		v.Message = s.Reason
	}
	return v
}

// VolumeCreate is a request to create a volume, or to hold one that is equal.
type VolumeCreate struct {
	VolumeEdit

	Name    string `json:"name"`
	Region  string `json:"cloud_region_id"`
	Project string `json:"project,omitempty"`
	Holder  string `json:"holder,omitempty"`  // default: the name of the caller
	Timeout any    `json:"timeout,omitempty"` // a duration or a number of seconds
}

// VolumeEdit holds the fields of a volume that a merge patch may name.
type VolumeEdit struct {
	Source      nf.VolumeSource   `json:"source"`
	Size        string            `json:"size,omitempty"`
	AccessModes []string          `json:"access_modes,omitempty"`
	Mode        string            `json:"mode,omitempty"`
	Retention   nf.Retention      `json:"retention,omitempty"`
	Keep        bool              `json:"keep"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// VolumeEditOf converts the fields of a volume that can be edited.
func VolumeEditOf(v nf.Volume, spec nf.VolumeSpec) VolumeEdit {
	return VolumeEdit{spec.Source, spec.Size, spec.AccessModes, spec.Mode, spec.Retention, v.Keep, v.Description, v.Labels}
}

// Spec returns the spec of the volume.
func (e VolumeEdit) Spec() nf.VolumeSpec {
	return nf.VolumeSpec{Source: e.Source, Size: e.Size, AccessModes: e.AccessModes, Mode: e.Mode, Retention: e.Retention}
}

// VolumeUse binds a claim of an instance to a volume.
type VolumeUse struct {
	Volume string `json:"volume"`          // name in the region of the instance
	Claim  string `json:"claim,omitempty"` // default: the name of the volume
}

// VolumeUseOf converts the use of a volume.
func VolumeUseOf(u nf.VolumeUse) VolumeUse { return VolumeUse(u) }

// Domain returns the use as the engine has it.
func (u VolumeUse) Domain() nf.VolumeUse {
	return nf.VolumeUse{Volume: u.Volume, Claim: cmp.Or(u.Claim, u.Volume)}
}
