package lifecycle

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Cluster is what the engine asks of one cloud region. Owner is the id of the
// instance that the call is made for.
type Cluster interface {
	Observer
	Changer
	Provider
	Adopter
	render.Region
}

// Adopter is the part of a Cluster that takes over what runs already.
type Adopter interface {
	// PreflightAdopt is Preflight for objects that are to be taken over: one
	// that bears the claim may exist, too.
	PreflightAdopt(ctx context.Context, owner string, bounds nf.Bounds, claim nf.Claim, objects []*unstructured.Unstructured) error

	// Adopt makes those refs the owner's that exist and bear the claim, without
	// a change to what they are: nf.Configured, or nf.Unchanged when it is the
	// owner's already or does not exist, with a message that says so. It is
	// nf.Conflict for one that is somebody else's. Repeating it changes nothing.
	Adopt(ctx context.Context, owner string, claim nf.Claim, refs []nf.Ref) ([]nf.Change, error)

	// VolumeClaims returns the PersistentVolumeClaims that those of the owner's
	// StatefulSets have made which the refs name, and that would stay without
	// them, grouped by StatefulSet. A StatefulSet that does not exist any more is
	// taken from the planned ones. A claim that belongs to another instance, that
	// another StatefulSet may have made, or that another's pod uses, is left out.
	VolumeClaims(ctx context.Context, owner string, refs []nf.Ref, planned []*unstructured.Unstructured) ([]nf.SetClaims, error)
}

// Provider is the part of a Cluster that makes what is nobody's.
type Provider interface {
	// Ensure makes those objects that are missing, for nobody, and leaves those
	// that are there as they are. It returns when each is nf.Current, with
	// nf.Created or nf.Unchanged for each; its errors are those of Apply, and
	// nf.Failed. Repeating it changes nothing.
	Ensure(ctx context.Context, objects []*unstructured.Unstructured) ([]nf.Change, error)
}

// OpenCluster returns the cluster of a region, which acts as the project's service
// account there if the region names one: nf.NotFound when the region is not
// registered. It does not dial.
type OpenCluster func(ctx context.Context, region, project string) (Cluster, error)

// Observer is the part of a Cluster that changes nothing.
type Observer interface {
	Watcher

	// Preflight checks that the objects could be applied for the owner within
	// the bounds: every kind is served by the region or defined by a
	// CustomResourceDefinition among the objects (nf.Unsupported, with one
	// violation for each that is not), every object is within the bounds
	// (nf.Invalid for a namespace that is not opened, nf.Forbidden with
	// nf.ReasonTenant for a cluster-scoped kind that is not granted), and no
	// object exists already that is not the owner's (nf.Conflict, with one
	// violation for each and who it belongs to). It sets metadata.namespace of
	// namespaced objects that lack one, and clears it on cluster-scoped ones. An
	// object without nf.OwnerLabel is one for Ensure, and may exist.
	Preflight(ctx context.Context, owner string, bounds nf.Bounds, objects []*unstructured.Unstructured) error

	// Namespaces returns those of the named namespaces that exist, by name.
	Namespaces(ctx context.Context, names []string) (map[string]nf.Namespace, error)

	// Scope reports whether a kind is served, in the version that is asked for,
	// and whether its objects have a namespace.
	Scope(ctx context.Context, ref nf.Ref) (namespaced, served bool, err error)

	// Diff tells what Apply would change, by a server-side dry run.
	Diff(ctx context.Context, owner string, objects []*unstructured.Unstructured) ([]nf.Change, error)
}

// Watcher is the part of a Cluster that says how objects are.
type Watcher interface {
	// Health returns the present status of each ref, in their order.
	Health(ctx context.Context, owner string, refs []nf.Ref) ([]nf.Health, error)

	// Watch yields the status of each target, at once and whenever it changes,
	// until the loop stops or the context ends; an error ends the sequence. A
	// status that speaks of an older generation than the target's, or of
	// another uid, is not yielded. A workload whose pods cannot start (image
	// pull, crash loop, quota) is StatusFailed with the pod's own message.
	Watch(ctx context.Context, owner string, targets []nf.Change) iter.Seq2[nf.Health, error]

	// Unready returns the pods of the owner's refs that are not ready, sorted, at
	// most as many as asked for, and how many more there are. The message of each
	// says its phase, the state of its containers and its last event, in bounded
	// length. Events that cannot be read are left out.
	Unready(ctx context.Context, owner string, refs []nf.Ref, most int) (pods []nf.Health, more int, err error)
}

// Changer is the part of a Cluster that changes it.
type Changer interface {
	// Apply makes the objects be as given, in parallel with a bound, by
	// server-side apply under the owner's field manager. It returns what it did
	// to each object that it reached, in the given order, and the first error:
	// nf.Conflict when an object or a field belongs to somebody else, or, with the
	// reason "immutable" and a violation that names the object, when a field of
	// it cannot be changed; nf.Invalid when the API server refuses the object for
	// itself. Repeating it changes nothing.
	Apply(ctx context.Context, owner string, objects []*unstructured.Unstructured) ([]nf.Change, error)

	// Delete asks for the removal of those refs that exist and are the
	// owner's, after their dependents where they may have any, and returns a
	// change for each ref: nf.Deleted, nf.Unchanged when it did not exist, or nf.Kept
	// when it belongs to somebody else. It does not wait: Watch tells when
	// they are gone.
	Delete(ctx context.Context, owner string, refs []nf.Ref) ([]nf.Change, error)

	// Orphan takes the ownership off those refs that exist and are the owner's,
	// and leaves the objects in place: nf.Orphaned, nf.Unchanged or nf.Kept, as
	// Delete says. Repeating it changes nothing.
	Orphan(ctx context.Context, owner string, refs []nf.Ref) ([]nf.Change, error)

	// EnsureNamespace creates the namespace when it is missing, with
	// nf.MadeByLabel and the project in nf.ProjectAnnotation, and returns it as
	// it is. A namespace that is being deleted is nf.Busy.
	EnsureNamespace(ctx context.Context, namespace, project string) (nf.Namespace, error)

	// RemoveNamespace deletes a namespace that bears nf.MadeByLabel, unless it
	// holds objects that are neither the cluster's own (the default service
	// account, the root CA, events, leases) nor dependents of such; those are
	// returned, and the namespace stays. One without the label, or none, is
	// left alone without an error. It returns when the namespace is gone.
	RemoveNamespace(ctx context.Context, namespace string) (kept []nf.Ref, err error)
}
