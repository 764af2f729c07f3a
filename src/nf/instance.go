package nf

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// OwnerLabel is on every object that the service applies for a VNF instance, and
// on the pods that they create. Its value is the instance's id. ONAP's tools
// select by it. Objects of other subjects have SubjectLabel.
const OwnerLabel = "k8splugin.io/rb-instance-id"

// ReservedPrefix starts the labels and annotations that only the service sets.
// Packages may use those of them that are documented as theirs.
const ReservedPrefix = "k8splugin.io/"

// HookTimeoutAnnotation is the prefix of annotations of a Spec that set the
// timeout of an event's hooks, for example "hook-timeout/pre-install": "1m". Hooks
// with a timeout of 0 or less are not waited for.
const HookTimeoutAnnotation = "hook-timeout/"

// CreatedByLabel, with the value CreatedBy, is on every namespace that the service
// created. The service never deletes a namespace without it.
const (
	CreatedByLabel = "k8splugin.io/created-by"
	CreatedBy      = "k8splugin"
)

// RegionAnnotationPrefix begins the annotations of a namespace that the service created, one
// for each cloud region that uses it: two regions may be the same cluster. A hash of the
// region's id follows; the value is the id.
const RegionAnnotationPrefix = ReservedPrefix + "region-"

// Instance is one VNF instance: a package that runs in a namespace of a region.
type Instance struct {
	ID            string            `json:"id"`
	Name          string            `json:"name,omitempty"`
	Description   string            `json:"description,omitempty"`
	Region        string            `json:"region"`
	Namespace     string            `json:"namespace"`
	Networks      []Attachment      `json:"networks,omitempty"`   // that its request asks for
	Attached      []Attachment      `json:"attached,omitempty"`   // as in its revision
	Volumes       []VolumeUse       `json:"volumes,omitempty"`    // that its request asks for
	Bound         []VolumeUse       `json:"bound,omitempty"`      // as in its revision
	Workloads     []WorkloadCluster `json:"workloads,omitzero"`   // its clusters that become regions, as requested; nil: its package declares them
	Registered    []WorkloadCluster `json:"registered,omitempty"` // all of them; nil: they are Workloads
	Compute       []ComputeUse      `json:"compute,omitempty"`    // profiles of its workloads, resolved
	Namespaces    []string          `json:"namespaces,omitempty"` // further ones that its request opens
	Entered       []string          `json:"entered,omitempty"`    // further ones that may contain its objects
	Project       string            `json:"project,omitempty"`    // the tenant; empty: DefaultProject
	Package       string            `json:"package"`              // the csar_id
	PackageDigest string            `json:"package_digest"`       // of the content that Revision was rendered from
	Inputs        Inputs            `json:"inputs"`
	Sensitive     []string          `json:"sensitive,omitempty"` // names of inputs that are masked when shown
	Labels        map[string]string `json:"labels,omitempty"`
	Hidden        []string          `json:"hidden,omitempty"`      // secret texts, as in its revision
	Release       string            `json:"release,omitempty"`     // release name of a chart; empty: the instance's name, or else its id
	Amendments    []Amendment       `json:"amendments,omitempty"`  // day-2 configuration, in the order in which it is layered over the package
	Annotations   map[string]string `json:"annotations,omitempty"` // data that an API stores with the revision
	State         InstanceState     `json:"state"`
	Message       string            `json:"message,omitempty"`  // reason for the state
	Mentions      []Mentioned       `json:"mentions,omitempty"` // the mentions in Message
	Revision      int               `json:"revision"`           // the active revision; 0 before the first is active
	Newest        int               `json:"newest"`             // the highest revision number used so far
	Adopted       bool              `json:"adopted,omitempty"`  // its objects existed before it: until a revision is active, it may not delete them
	Settings      []Setting         `json:"settings,omitempty"` // fields that actions have set, which take precedence over the package
	Drift         DriftPolicy       `json:"drift,omitzero"`
	Claims        ClaimPolicy       `json:"claims,omitempty"` // of StatefulSets, at termination
	AAI           AAI               `json:"aai,omitzero"`
	AAIAdapter    bool              `json:"aai_adapter,omitempty"` // SO's adapter has subscribed to it; see AAIInForce
	Unlisted      bool              `json:"unlisted,omitempty"`    // a termination removes it from A&AI, or has failed after that; see AAIInForce
	Corrections   []Correction      `json:"corrections,omitempty"` // of drift, since the last change
	Inventory     []Item            `json:"inventory"`             // every object that exists or may exist because of the service
	Operation     string            `json:"operation,omitempty"`   // the operation that is changing the instance: the lock
	Claim         string            `json:"claim,omitempty"`       // that operation's claim: a replica with a different one may not write
	LastOperation string            `json:"last_operation"`
	Created       time.Time         `json:"created"`
	Updated       time.Time         `json:"updated"`
}

// InstanceState is the position of an instance in its life cycle.
type InstanceState string

// The states of an instance.
const (
	Instantiating InstanceState = "instantiating"
	Ready         InstanceState = "ready" // the last change succeeded
	Updating      InstanceState = "updating"
	Broken        InstanceState = "failed" // the last change failed and was kept
	Terminating   InstanceState = "terminating"
)

// Become changes the state of the instance. The message is the reason.
func (in *Instance) Become(state InstanceState, message string, mentions ...Mentioned) {
	in.State, in.Message, in.Mentions = state, message, mentions
}

// Said returns the message with its mentions.
func (in *Instance) Said() Text { return Text{in.Message, in.Mentions} }

// Inputs are the values that a caller gives for a package's variables, by the
// request field that contains them.
type Inputs struct {
	Parameters map[string]any   `json:"parameters,omitempty"`
	OOF        []map[string]any `json:"oof,omitempty"`     // oof_parameters: the results of placement
	Network    map[string]any   `json:"network,omitempty"` // network_parameters: addresses of connection points

	// Overrides are values of a chart by their path. Each is parsed like the right
	// side of Helm's --set. They take precedence over the parameters.
	Overrides map[string]string `json:"overrides,omitempty"`
	// KubeVersion is the Kubernetes version that a chart is rendered for, instead
	// of the region's.
	KubeVersion string `json:"kube_version,omitempty"`
	// ObjectLabels are set on every object, and on the pods that they create.
	ObjectLabels map[string]string `json:"object_labels,omitempty"`
}

// Amendment is a piece of day-2 configuration: a package that is rendered and
// layered over the objects of the instance's own package. Its objects replace
// those of the same kind and name, and add others.
type Amendment struct {
	Name    string `json:"name"`
	Package string `json:"package"`
	Inputs  Inputs `json:"inputs"`
}

// Revision is one version of an instance's desired state. A revision is written
// once and never changed.
type Revision struct {
	Instance      string            `json:"instance"`
	Number        int               `json:"number"` // from 1
	Package       string            `json:"package"`
	PackageDigest string            `json:"package_digest"`
	Inputs        Inputs            `json:"inputs"`
	Sensitive     []string          `json:"sensitive,omitempty"`
	Hidden        []string          `json:"hidden,omitempty"` // secret texts of the region or the package that the plan contains: never shown
	Labels        map[string]string `json:"labels,omitempty"`
	Description   string            `json:"description,omitempty"`
	Release       string            `json:"release,omitempty"`
	Namespaces    []string          `json:"namespaces,omitempty"`
	Amendments    []Amendment       `json:"amendments,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
	Networks      []Attachment      `json:"networks,omitempty"` // that the request asks for
	Attached      []Attachment      `json:"attached,omitempty"` // of the workloads; nil: they are Networks
	Volumes       []VolumeUse       `json:"volumes,omitempty"`  // that the request asks for
	Bound         []VolumeUse       `json:"bound,omitempty"`    // of the claims; nil: they are Volumes
	Drift         DriftPolicy       `json:"drift,omitzero"`
	Claims        ClaimPolicy       `json:"claims,omitempty"`
	AAI           AAI               `json:"aai,omitzero"`
	Workloads     []WorkloadCluster `json:"workloads,omitzero"`          // as requested; nil: the package declares them
	Registered    []WorkloadCluster `json:"registered,omitempty"`        // all of them; nil: they are Workloads
	Compute       []ComputeUse      `json:"compute,omitempty"`           // profiles of the workloads, resolved
	Notes         string            `json:"notes,omitempty"`             // of the package for its users, with secrets masked; at most MaxNotes bytes
	Plan          string            `json:"plan"`                        // digest of the stored plan
	Operation     string            `json:"operation"`                   // that created it
	Restores      int               `json:"restored_revision,omitempty"` // the earlier revision whose content it has
	Created       time.Time         `json:"created"`
}

// MaxNotes limits the notes of a revision in bytes.
const MaxNotes = 16 << 10

// Item is one object in an instance's inventory.
type Item struct {
	Ref
	Stage   int  `json:"stage"`             // the stage of the plan that applies it; deletion runs from the highest to the lowest
	Passing bool `json:"passing,omitempty"` // it is deleted by Kubernetes when it is done: a Job with a time to live
	Keep    bool `json:"keep,omitempty"`    // its package declares that it is never deleted, but left in place
	Hook    bool `json:"hook,omitempty"`    // a hook created it, and it is not part of the instance's desired state
	Volume  bool `json:"volume,omitempty"`  // a volume claim that a StatefulSet created, and that a removal must delete
	Adopted bool `json:"adopted,omitempty"` // it existed before the instance; it stays if the instance never gets an active revision
}

// Ref identifies one object of a cluster.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // empty for cluster-scoped kinds
	Name      string `json:"name"`
}

// Identified is an object of Kubernetes with the fields that identify it.
type Identified interface {
	GetAPIVersion() string
	GetKind() string
	GetNamespace() string
	GetName() string
}

// RefOf returns the identity of an object. An API version with more than one slash has
// no group, version or kind.
func RefOf(o Identified) Ref {
	out := Ref{Version: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
	switch group, version, grouped := strings.Cut(out.Version, "/"); {
	case strings.Contains(version, "/"):
		out.Version, out.Kind = "", ""
	case grouped:
		out.Group, out.Version = group, version
	}
	return out
}

// APIVersion returns "group/version", or the version alone for the core group.
func (r Ref) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Key identifies the object in any version: "kind.group/namespace/name".
func (r Ref) Key() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	return kind + "/" + r.Namespace + "/" + r.Name
}

// String returns "Kind namespace/name": "Deployment default/web".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Compare orders refs by kind, namespace, name and group.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(strings.Compare(r.Kind, o.Kind), strings.Compare(r.Namespace, o.Namespace),
		strings.Compare(r.Name, o.Name), strings.Compare(r.Group, o.Group))
}

// Components returns the objects of an inventory as lower-case kind → sorted
// names, without those that hooks created. These are the vnf_components of the
// 2018 URL layout.
func Components(items []Item) map[string][]string {
	out := map[string][]string{}
	for _, it := range items {
		if it.Hook {
			continue
		}
		kind := strings.ToLower(it.Kind)
		out[kind] = append(out[kind], it.Name)
	}
	for kind := range out {
		slices.Sort(out[kind])
	}
	return out
}

// Status is the condition of one object, in kstatus words.
type Status string

// The statuses of an object.
const (
	InProgress     Status = "InProgress"
	StatusFailed   Status = "Failed"
	Current        Status = "Current"
	StatusDeleting Status = "Terminating"
	Absent         Status = "NotFound"
	Unknown        Status = "Unknown"
)

// Health is the status of one object at one time.
type Health struct {
	Ref
	Status     Status `json:"status"`
	Message    string `json:"message,omitempty"`
	UID        string `json:"uid,omitempty"`
	Generation int64  `json:"generation,omitempty"` // the generation that the status is about
	Done       bool   `json:"done,omitempty"`       // a Job or a Pod that has finished with success

	Blocker HealPod `json:"-"` // the pod of another revision that blocks the rollout of a StatefulSet until it is removed; set for a watch only
}

// Action is the effect of a change on an object.
type Action string

// The actions.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Deleted    Action = "deleted"
	Kept       Action = "kept"      // left in place on purpose; Message says why
	Orphaned   Action = "orphaned"  // left in place, and unowned from now on
	Recreated  Action = "recreated" // deleted and created again, because a field is immutable
	Adopted    Action = "adopted"   // it existed without an owner, and gets one; Message says where it came from
)

// Change is the effect, actual or previewed, of an operation on one object.
type Change struct {
	Ref
	Action     Action      `json:"action"`
	UID        string      `json:"uid,omitempty"`
	Generation int64       `json:"generation,omitempty"`
	Message    string      `json:"message,omitempty"`
	Mentions   []Mentioned `json:"mentions,omitempty"` // the mentions in Message
	Fields     []Field     `json:"fields,omitempty"`   // the differences; set by a dry run only
	Former     []string    `json:"-"`                  // uids of its pods that were removed; set for a watch only, to which a status that may count them is not Current
}

// Said returns the message with its mentions.
func (c Change) Said() Text { return Text{c.Message, c.Mentions} }

// Field is one difference between the live object and the desired one. Old or
// New is nil if the field is absent; values of Secrets are Masked.
type Field struct {
	Path string `json:"path"` // "spec.replicas", "spec.template.spec.containers[0].image"
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}
