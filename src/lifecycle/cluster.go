package lifecycle

import (
	"context"
	"encoding/json"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Cluster is one cloud region, as the engine uses it. An owner is the subject
// that a call is made for, such as a VNF instance.
type Cluster interface {
	Observer
	Changer
	Provider
	Adopter
	render.Region
}

// Corrector is the part of a Cluster that compares objects with those that the owner has
// applied, and corrects them. Only fields that the owner applies count.
type Corrector interface {
	// Drift returns how each object differs, in the given order, without the ignored
	// fields and without the numbers of replicas that autoscalers set. If an object
	// cannot be compared, its message says why.
	Drift(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, ignore []nf.DriftIgnore) ([]nf.Drift, error)

	// Correct applies those of the objects that have drifted; ignored fields keep the
	// values that others have given them. Otherwise, it is as Apply.
	Correct(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, ignore []nf.DriftIgnore) ([]nf.Change, error)
}

// Checker is the part of a Cluster that checks whether objects can be applied.
type Checker interface {
	// Preflight checks that the objects can be applied for the owner within the
	// bounds. It returns how many of those with an owner's label exist, or
	//
	//	- nf.Unsupported, with a violation for each kind that is neither served by
	//	  the region nor defined by a CustomResourceDefinition among the objects;
	//	- nf.Invalid for a namespace that is not opened, and nf.Forbidden with
	//	  nf.ReasonTenant for a cluster-scoped kind that is not granted;
	//	- nf.Conflict, with a violation for each object that exists and does not
	//	  belong to the owner, which names the object's owner;
	//	- nf.Invalid, with a violation for each field that does not fit the region's
	//	  schemas.
	//
	// It sets metadata.namespace of namespaced objects that lack one, and clears
	// it on cluster-scoped ones. An object without an owner's label is for Ensure,
	// and may exist.
	Preflight(ctx context.Context, owner nf.Subject, bounds nf.Bounds, objects []*unstructured.Unstructured) (existing int, err error)

	// Scope reports whether a kind is served in the version of the ref, and
	// whether its objects are namespaced.
	Scope(ctx context.Context, ref nf.Ref) (namespaced, served bool, err error)

	// DryRun has the API server check objects that Preflight has accepted, and
	// changes nothing. It returns nf.Invalid, with a violation for each field that
	// the API server rejects. It returns the objects that were not checked, for
	// example because their kind or namespace does not exist yet; those rejected
	// for another reason than a field count among them. A change of an immutable
	// field is not an error. Objects without an owner's label are not sent.
	//
	// Names are the names of the owner, in an order that is the same for all
	// owners. DryRun need not send an object if the API server has recently
	// accepted one that differs only in the names of its owner. If names is empty,
	// it sends all objects.
	DryRun(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, names []string) (unchecked []nf.Ref, err error)
}

// Adopter is the part of a Cluster that adopts existing objects.
type Adopter interface {
	// PreflightAdopt is Preflight for objects to be adopted: an object that
	// matches the selector may exist, too. It returns a change for each object that
	// exists: nf.Adopted, with a message that names its origin, or nf.Unchanged if it is
	// the owner's. It checks schemas only if unowned objects match, which are applied.
	PreflightAdopt(ctx context.Context, owner nf.Subject, bounds nf.Bounds, selector nf.AdoptionSelector, objects []*unstructured.Unstructured) ([]nf.Change, error)

	// Adopt assigns to the owner those refs that exist and match the selector, and
	// changes nothing else of them. The action is nf.Adopted. It is
	// nf.Unchanged, with a message that gives the reason, if the object already
	// belongs to the owner or does not exist. Adopt returns nf.Conflict for an
	// object that belongs to another owner. It is idempotent.
	Adopt(ctx context.Context, owner nf.Subject, selector nf.AdoptionSelector, refs []nf.Ref) ([]nf.Change, error)

	// VolumeClaims returns the PersistentVolumeClaims, grouped by StatefulSet,
	// that the owner's StatefulSets among the refs have created and that would
	// remain without them. For a StatefulSet that no longer exists, the planned
	// one is used. A claim is left out if it belongs to another instance, if
	// another StatefulSet may have created it, or if another's pod uses it.
	VolumeClaims(ctx context.Context, owner nf.Subject, refs []nf.Ref, planned []*unstructured.Unstructured) ([]nf.SetClaims, error)
}

// Setter is the part of a Cluster that sets single fields of objects. Other clients'
// changes of such a field are replaced; nothing else of the object changes.
type Setter interface {
	// Scaling returns the settings that give the owner's objects their numbers of
	// replicas, in the given order. It returns nf.NotFound for an object that does not
	// exist, nf.Unsupported for one that has no number of replicas, nf.Conflict if an
	// object belongs to another owner, or if an autoscaler or another controller sets
	// the number, and nf.Invalid for a number below 0. If force is set, a number that
	// another client has set is not a conflict.
	Scaling(ctx context.Context, owner nf.Subject, wanted []nf.Scaling, force bool) ([]nf.Setting, error)

	// Restarting returns the settings that restart the pods of the owner's objects. The
	// value is that of nf.RestartPath. It returns nf.Unsupported for an object that does
	// not replace its pods one after another, nf.Conflict for a paused one, and
	// otherwise fails as Scaling does; for virtual machines, as Machines does.
	Restarting(ctx context.Context, owner nf.Subject, refs []nf.Ref, value json.RawMessage) ([]nf.Setting, error)

	// Machines returns the settings that start, stop or migrate the owner's virtual
	// machines. It returns nf.Unsupported for another kind, or for a machine that cannot
	// be migrated while it runs; nf.Conflict if its state or its run strategy does not
	// allow the verb; and otherwise fails as Scaling does.
	Machines(ctx context.Context, owner nf.Subject, refs []nf.Ref, verb nf.Verb) ([]nf.Setting, error)

	// Set gives fields of the owner's objects their values, and returns a change for
	// each: nf.Configured; or nf.Unchanged if it is as wanted already, or, without a
	// uid, if the object does not exist. The change of the restart of a virtual machine
	// is that of its former instance, nf.Deleted; that of its migration is nf.Created,
	// and names the object that is ready at its end. Set is idempotent. A dry run
	// changes nothing, and fails as Set would.
	Set(ctx context.Context, owner nf.Subject, settings []nf.Setting, dryRun bool) ([]nf.Change, error)

	// Evict evicts one of the owner's pods, or deletes it if the task says so: nf.Deleted;
	// nf.Unchanged if the pod is gone or another has its name. It does not wait until the
	// pod is gone. While a disruption budget does not allow it, Evict tries again for the
	// task's patience. Then it returns nf.Failed with nf.ReasonBudget, which names the
	// budget. It is idempotent.
	Evict(ctx context.Context, owner nf.Subject, pod nf.HealPod, task nf.HealTask) (nf.Change, error)
}

// Provider is the part of a Cluster that creates objects, sets fields of them, and
// corrects them.
type Provider interface {
	Setter
	Corrector

	// ApplyNew is Apply for objects that the owner does not have: Preflight found
	// none of the owner's objects, and this is the first request to apply these.
	// It does not look for them. If another client has created one since, it
	// returns nf.Conflict, as Apply does.
	ApplyNew(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error)

	// Ensure creates missing objects without an owner, and leaves existing ones as
	// they are. It returns when each is nf.Current, with nf.Created or
	// nf.Unchanged for each. Its errors are those of Apply, and nf.Failed. It is
	// idempotent.
	Ensure(ctx context.Context, objects []*unstructured.Unstructured) ([]nf.Change, error)
}

// OpenCluster returns the cluster of a region. The cluster acts as the
// project's service account there if the region names one. It returns
// nf.NotFound if the region is not registered. It does not dial.
type OpenCluster func(ctx context.Context, region, project string) (Cluster, error)

// Observer is the part of a Cluster that changes nothing.
type Observer interface {
	Checker
	Watcher

	// Namespaces returns those of the named namespaces that exist, by name.
	Namespaces(ctx context.Context, names []string) (map[string]nf.Namespace, error)

	// Diff returns the changes that Apply would make, by a server-side dry run. The
	// action for an object of no owner that matches the selector is nf.Adopted.
	Diff(ctx context.Context, owner nf.Subject, selector nf.AdoptionSelector, objects []*unstructured.Unstructured) ([]nf.Change, error)
}

// Watcher is the part of a Cluster that reports the status of objects.
type Watcher interface {
	// Health returns the present status of each ref, in the given order.
	Health(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Health, error)

	// Watch yields the status of each target, at once and whenever it changes,
	// until the loop stops or the context ends; an error ends the sequence. It
	// does not yield a status of an older generation than the target's, or of
	// another uid. A workload whose pods cannot start (image pull, crash loop,
	// quota) is StatusFailed with the pod's own message. The health of a StatefulSet
	// names a pod that blocks its rollout.
	Watch(ctx context.Context, owner nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error]

	// Pods returns the pods of the present revision of each of the owner's refs.
	Pods(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Pod, error)

	// Unready returns the pods of the owner's refs that are not ready, sorted, at
	// most as many as asked for, and the number of the others. The message of each
	// states its phase, the state of its containers and its last event, in bounded
	// length. Events that cannot be read are left out.
	Unready(ctx context.Context, owner nf.Subject, refs []nf.Ref, most int) (pods []nf.Health, more int, err error)
}

// Changer is the part of a Cluster that changes it.
type Changer interface {
	// Apply applies the objects, in parallel with a bound, by server-side apply
	// under the owner's field manager. It returns its action on each object that
	// it reached, in the given order, and the first error: nf.Conflict if an
	// object or a field belongs to another owner; nf.Conflict with the reason
	// "immutable" and a violation that names the object if a field is immutable;
	// nf.Invalid if the API server rejects the object itself. It is idempotent.
	Apply(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error)

	// Delete requests the deletion of those refs that exist and belong to the
	// owner, after their dependents if they may have any. It returns a change for
	// each ref: nf.Deleted; nf.Unchanged if it did not exist; nf.Kept if it
	// belongs to another owner; nf.Orphaned, with a message, for a
	// CustomResourceDefinition whose deletion would delete objects of others. It does
	// not wait: Watch reports when the objects are gone.
	Delete(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error)

	// Orphan removes the ownership from those refs that exist and belong to the
	// owner, and leaves the objects in place. The actions are nf.Orphaned,
	// nf.Unchanged or nf.Kept, as for Delete. It is idempotent.
	Orphan(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error)

	// EnsureNamespace creates the namespace if it is missing, with nf.CreatedByLabel
	// and the project in nf.ProjectAnnotation, and returns it. It returns nf.Busy
	// if the namespace is being deleted.
	EnsureNamespace(ctx context.Context, namespace, project string) (nf.Namespace, error)

	// RemoveNamespace deletes a namespace that has nf.CreatedByLabel, and returns
	// when it is gone. The namespace remains if it holds objects other than the
	// cluster's own (the default service account, the root CA, events, leases) and
	// their dependents; RemoveNamespace returns those objects. A namespace without
	// the label, or one that does not exist, is not an error and not touched.
	RemoveNamespace(ctx context.Context, namespace string) (kept []nf.Ref, err error)
}
