package nf

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Shared is a resource of a cloud region that VNF instances share: a network or a
// volume. Its objects in the region belong to it, and not to an instance. It exists as
// long as it has a holder, or for ever if it is kept.
type Shared struct {
	ID          string            `json:"id"`     // SharedID of Region and Name
	Name        string            `json:"name"`   // unique in the region, in all projects
	Region      string            `json:"region"` // id of the cloud region
	Project     string            `json:"project,omitempty"`
	Driver      string            `json:"driver,omitempty"` // of a network: "multus"
	Spec        json.RawMessage   `json:"spec"`             // as its kind has normalized it
	Keep        bool              `json:"keep,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	State       SharedState       `json:"state"`
	Failure     Text              `json:"failure,omitzero"` // of SharedFailed, or of the last change, which was undone
	Inventory   []Ref             `json:"inventory,omitempty"`
	Operation   string            `json:"operation,omitempty"` // that changes it; empty: none
	Claim       string            `json:"claim,omitempty"`     // token of the operation's claim
	Last        string            `json:"last,omitempty"`      // the last operation that was accepted
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// SharedState is the state of a shared resource.
type SharedState string

// The states of a shared resource.
const (
	SharedCreating SharedState = "creating"
	SharedActive   SharedState = "active"
	SharedChanging SharedState = "changing"
	SharedDeleting SharedState = "deleting" // unless it gets a holder in time
	SharedFailed   SharedState = "failed"   // a change or a deletion has failed; it can be repeated
)

// SharedID returns the id of the shared resource with the name in a region: "edge.oam".
// No name contains a dot, so two of a kind never have the same id.
func SharedID(region, name string) string { return region + "." + name }

// Scope returns the scope that permissions on the resource are required in.
func (s Shared) Scope() Scope { return Scope{Project: ProjectOf(s.Project), Region: s.Region} }

// Summary returns the summary of the resource.
func (s Shared) Summary() Summary {
	return Summary{Scope: s.Scope(), Attributes: append(labels(s.Labels),
		Attribute{AttributeRegion, s.Region}, Attribute{AttributeState, string(s.State)}, Attribute{AttributeProject, ProjectOf(s.Project)},
		Attribute{AttributeDriver, s.Driver})}
}

// SharedCount is the number of shared resources with the same properties.
type SharedCount struct {
	Region string
	Driver string // of networks
	State  SharedState
	Number int
}

// SharedRequest asks for a new shared resource, or for a hold on one that is equal.
type SharedRequest struct {
	Resource Shared // ID, State, Inventory and times are not read
	Holder   string // that holds it
	Timeout  time.Duration
	Key      RequestKey
	Trace    string
}

// Validate returns nf.Invalid unless the request for a resource of the kind is
// complete. The kind checks the spec.
func (r SharedRequest) Validate(kind SubjectKind) error {
	s := r.Resource
	v := slices.Concat(CheckSharedName("name", s.Name, kind), CheckID("cloud_region_id", s.Region), CheckLabels("labels", s.Labels), CheckText("description", s.Description),
		CheckID("holder", r.Holder), checkTimeout(r.Timeout))
	if s.Project != "" {
		v = append(v, CheckID("project", s.Project)...)
	}
	if len(v) == 0 {
		v = Subject{Kind: kind, ID: SharedID(s.Region, s.Name)}.CheckOwner("name")
	}
	if len(v) > 0 {
		return E(Invalid, "create", string(kind)+" "+s.Name, v)
	}
	return nil
}

// SharedChangeRequest asks for a change of a shared resource. The edit receives the
// present one and changes Spec, Keep, Description or Labels; it may be called more than
// once.
type SharedChangeRequest struct {
	Edit    func(*Shared) error
	Restart bool // restart the workloads that see the change only then
	Timeout time.Duration
	Key     RequestKey
	Trace   string

	// MayRestart returns an error if the caller may not restart the workloads of an
	// instance. Nil: the caller may restart all.
	MayRestart func(context.Context, Holder) error
}

// SharedPreview is the expected effect of a change of a shared resource.
type SharedPreview struct {
	Fields   []Field  // differences of the spec
	Changes  []Change // of objects of the resource; a change of a field may be Configured or Unchanged
	Users    []SharedUser
	Hidden   int // users that the caller may not see
	Warnings []string
}

// SharedUser is an instance whose workloads use a shared resource. Their pods see a
// change of its spec only when they are created again.
type SharedUser struct {
	Holder
	Workloads []SharedWorkload
}

// SharedWorkload is an object whose pods use a shared resource.
type SharedWorkload struct {
	Ref
	Restartable bool // an action can restart its pods
}

// Restartable returns the workloads that an action can restart, as requests name them,
// and the others.
func (u SharedUser) Restartable() (can []string, cannot []Ref) {
	for _, w := range u.Workloads {
		if w.Restartable {
			can = append(can, w.Ref.Kind+"."+w.Ref.Group+"/"+w.Ref.Namespace+"/"+w.Ref.Name)
		} else {
			cannot = append(cannot, w.Ref)
		}
	}
	return can, cannot
}

// SharedReleaseRequest asks to release a shared resource.
type SharedReleaseRequest struct {
	Holder   string // whose hold ends; there need not be one
	IfUnused bool   // return Conflict if there is another holder
	Timeout  time.Duration
	Key      RequestKey
	Trace    string
}

// CheckSharedName returns a violation unless name can name a shared resource of the
// kind: an RFC 1123 label, as the annotation for attachments allows it.
func CheckSharedName(field, name string, kind SubjectKind) Violations {
	if namespacePattern.MatchString(name) {
		return nil
	}
	return Violations{{Field: field, Message: fmt.Sprintf("%q is not a %s name: 1 to 63 lower-case letters, digits or '-', a letter or digit at both ends", name, kind)}}
}
