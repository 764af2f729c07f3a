package nf

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// OwnerLabel is on every object that the service applies, and on the pods that
// they make; its value is the id of the VNF instance. ONAP's tools select by it.
const OwnerLabel = "k8splugin.io/rb-instance-id"

// MadeByLabel, with the value MadeBy, is on every namespace that the service
// created; only those are ever removed by it.
const (
	MadeByLabel = "k8splugin.io/made-by"
	MadeBy      = "k8splugin"
)

// Instance is one VNF instance: a package brought up in a namespace of a region.
type Instance struct {
	ID            string            `json:"id"`
	Name          string            `json:"name,omitempty"`
	Description   string            `json:"description,omitempty"`
	Region        string            `json:"region"`
	Namespace     string            `json:"namespace"`
	Namespaces    []string          `json:"namespaces,omitempty"` // further ones that its request opens
	Entered       []string          `json:"entered,omitempty"`    // further ones that it may have objects in
	Project       string            `json:"project,omitempty"`    // the tenant; empty: DefaultProject
	Package       string            `json:"package"`              // the csar_id
	PackageDigest string            `json:"package_digest"`       // content that Revision was made from
	Inputs        Inputs            `json:"inputs"`
	Sensitive     []string          `json:"sensitive,omitempty"` // names of inputs that are masked when shown
	Labels        map[string]string `json:"labels,omitempty"`
	Hidden        []string          `json:"hidden,omitempty"`      // as of its revision
	Release       string            `json:"release,omitempty"`     // what a chart calls its release; empty: the name, or else the id
	Amendments    []Amendment       `json:"amendments,omitempty"`  // day-2 configuration, in the order it is laid over the package
	Annotations   map[string]string `json:"annotations,omitempty"` // what an API remembers with the revision, for itself
	State         InstanceState     `json:"state"`
	Message       string            `json:"message,omitempty"`   // why the state is what it is
	Revision      int               `json:"revision"`            // the revision that is in force; 0 before the first is
	Newest        int               `json:"newest"`              // the highest revision that was ever begun
	Adopted       bool              `json:"adopted,omitempty"`   // its objects were there before it: until a revision is in force they are not its to delete
	Inventory     []Item            `json:"inventory"`           // every object that exists or may exist because of us
	Operation     string            `json:"operation,omitempty"` // the operation that is changing the instance: the lock
	Claim         string            `json:"claim,omitempty"`     // that operation's claim: who has another one may not write
	LastOperation string            `json:"last_operation"`
	Created       time.Time         `json:"created"`
	Updated       time.Time         `json:"updated"`
}

// InstanceState says where an instance is in its life.
type InstanceState string

// The states of an instance.
const (
	Instantiating InstanceState = "instantiating"
	Ready         InstanceState = "ready" // the last change succeeded
	Updating      InstanceState = "updating"
	Broken        InstanceState = "failed" // the last change failed and was kept
	Terminating   InstanceState = "terminating"
)

// InstanceStates lists every state.
func InstanceStates() []InstanceState {
	return []InstanceState{Instantiating, Ready, Updating, Broken, Terminating}
}

// Inputs are the values that a caller gives for a package's variables, by where
// they were given.
type Inputs struct {
	Parameters map[string]any   `json:"parameters,omitempty"`
	OOF        []map[string]any `json:"oof,omitempty"`     // oof_parameters: placement's answers
	Network    map[string]any   `json:"network,omitempty"` // network_parameters: addresses of connection points

	// Overrides are values of a chart by their path, each read as the right side
	// of Helm's --set; they go over the parameters.
	Overrides map[string]string `json:"overrides,omitempty"`
	// KubeVersion is the version of Kubernetes that a chart is told, instead of
	// the region's.
	KubeVersion string `json:"kube_version,omitempty"`
	// ObjectLabels are put on every object, and on the pods that they make.
	ObjectLabels map[string]string `json:"object_labels,omitempty"`
}

// Amendment is a piece of day-2 configuration: a package that is rendered and
// laid over what the instance's own package renders to. Its objects replace
// those of the same kind and name, and add others.
type Amendment struct {
	Name    string `json:"name"`
	Package string `json:"package"`
	Inputs  Inputs `json:"inputs"`
}

// Revision is one version of an instance's desired state. Revisions are written
// once and never edited.
type Revision struct {
	Instance      string            `json:"instance"`
	Number        int               `json:"number"` // from 1
	Package       string            `json:"package"`
	PackageDigest string            `json:"package_digest"`
	Inputs        Inputs            `json:"inputs"`
	Sensitive     []string          `json:"sensitive,omitempty"`
	Hidden        []string          `json:"hidden,omitempty"` // texts of Secrets of the region that the plan repeats: never shown
	Labels        map[string]string `json:"labels,omitempty"`
	Description   string            `json:"description,omitempty"`
	Release       string            `json:"release,omitempty"`
	Namespaces    []string          `json:"namespaces,omitempty"`
	Amendments    []Amendment       `json:"amendments,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
	Plan          string            `json:"plan"`               // digest of the stored plan
	Operation     string            `json:"operation"`          // that made it
	Restores      int               `json:"restores,omitempty"` // the revision that it is a return to
	Created       time.Time         `json:"created"`
}

// Item is one object in an instance's inventory.
type Item struct {
	Ref
	Stage   int  `json:"stage"`             // the stage of the plan that applies it; deletion goes from high to low
	Passing bool `json:"passing,omitempty"` // it goes by itself when it is done: a Job with a time to live
	Keep    bool `json:"keep,omitempty"`    // its package says that it is never deleted, but left in place
	Hook    bool `json:"hook,omitempty"`    // it was made by a hook, and is no part of what the instance is
	Volume  bool `json:"volume,omitempty"`  // a volume claim that a StatefulSet made, and that a removal is to delete
}

// Ref names one object of a cluster.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // empty for cluster-scoped kinds
	Name      string `json:"name"`
}

// APIVersion returns "group/version", or the version alone for the core group.
func (r Ref) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Key identifies the object whatever the version it is spoken of in:
// "kind.group/namespace/name".
func (r Ref) Key() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	return kind + "/" + r.Namespace + "/" + r.Name
}

// String says `Deployment default/web`.
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

// Components returns an inventory, without what hooks have made, as lower-case kind → sorted names, the
// vnf_components of the founding API.
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

// Status is the condition of one object: kstatus' words.
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
	Generation int64  `json:"generation,omitempty"` // the generation that the status speaks of
	Done       bool   `json:"done,omitempty"`       // it had work to do, a Job or a Pod, and has done it well
}

// Action says what a change did to an object.
type Action string

// The actions.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Deleted    Action = "deleted"
	Kept       Action = "kept"      // left in place on purpose; Message says why
	Orphaned   Action = "orphaned"  // left in place, and nobody's from now on
	Recreated  Action = "recreated" // deleted and made again, because a field cannot be changed
)

// Change is what an operation did, or would do, to one object.
type Change struct {
	Ref
	Action     Action  `json:"action"`
	UID        string  `json:"uid,omitempty"`
	Generation int64   `json:"generation,omitempty"`
	Message    string  `json:"message,omitempty"`
	Fields     []Field `json:"fields,omitempty"` // what differs; filled by a dry run only
}

// Field is one difference between the live object and the wanted one. Old or
// New is nil where the field is absent; values of Secrets are Masked.
type Field struct {
	Path string `json:"path"` // "spec.replicas", "spec.template.spec.containers[0].image"
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}
