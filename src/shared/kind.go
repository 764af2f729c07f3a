package shared

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Kind knows the resources of one kind. Its methods may be called more than once for
// one change.
type Kind interface {
	// Normalize checks the spec of a resource for its region, and returns it with its
	// defaults: two specs that mean the same there are equal bytes. Before is the spec
	// that a change replaces; nil without one. It returns nf.Invalid with a violation
	// for each fault, nf.Conflict for a change that is not possible, and nf.Unsupported
	// if this service cannot create such a resource.
	Normalize(ctx context.Context, in Place, s nf.Shared, before json.RawMessage) (json.RawMessage, error)
	// Check returns the objects that Apply may create, if the region accepts them.
	Check(ctx context.Context, c Cluster, s nf.Shared) ([]nf.Ref, error)
	// Apply creates the objects of a resource, or changes them to its spec.
	Apply(ctx context.Context, r *Region, s nf.Shared) error
	// Refs returns the objects of a resource that has been applied. The others in its
	// inventory are deleted.
	Refs(s nf.Shared) ([]nf.Ref, error)
	// Remove deletes the objects in the inventory of a resource.
	Remove(ctx context.Context, r *Region, s nf.Shared) error
}

// RegionChecker is a Kind that compares a resource with what its region declares.
type RegionChecker interface {
	// CheckRegion returns what the region does not declare, or nf.Unsupported with a
	// violation for each field that needs what the region declares as absent.
	CheckRegion(region nf.Region, s nf.Shared) (warnings []string, err error)
}

// Adviser is a Kind that knows what a region may lack for a resource that it accepts.
type Adviser interface {
	// Advise returns warnings. It returns none if the region does not show what it has.
	Advise(ctx context.Context, c Cluster, s nf.Shared) (warnings []string)
}

// Place is the region of a resource, before an operation.
type Place struct {
	Region   nf.Region
	Open     func() (Cluster, error) // does not dial
	Attached bool                    // something besides names may use the resource
}

// Cluster is a cloud region, as shared resources use it. For the contract of its
// methods, see lifecycle.Cluster.
type Cluster interface {
	Observer
	Changer
}

// Observer is the part of a Cluster that changes nothing.
type Observer interface {
	Preflight(ctx context.Context, owner nf.Subject, bounds nf.Bounds, objects []*unstructured.Unstructured) (existing int, err error)
	Served(ctx context.Context, kinds []nf.Ref) ([]nf.Ref, error)
	Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error)
	Watch(ctx context.Context, owner nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error]
}

// Changer is the part of a Cluster that changes it.
type Changer interface {
	EnsureNamespace(ctx context.Context, namespace, project string) (nf.Namespace, error)
	Apply(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error)
	Delete(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error)
}

// Regions are the registered cloud regions.
type Regions interface {
	// Region returns a region. It returns nf.NotFound if the region is not
	// registered.
	Region(ctx context.Context, id string) (nf.Region, error)
	// Hold prevents the removal of a region. It is idempotent.
	Hold(ctx context.Context, h nf.Holding) error
	// Release ends a hold.
	Release(ctx context.Context, h nf.Holding) error
}

// Region is the region of a resource during an attempt at an operation. It records the
// changes and the progress of its methods in the operation.
type Region struct {
	Cluster Cluster
	attempt *operation.Attempt
	record  func(context.Context, []nf.Ref) error
}

// Record adds objects to the inventory of the resource.
func (r *Region) Record(ctx context.Context, refs ...nf.Ref) error { return r.record(ctx, refs) }

// Held returns an error if this process is no longer to change the resource. It must be
// called before each change of a step but the first.
func (r *Region) Held(ctx context.Context) error { return r.attempt.Held(ctx) }

// Keep keeps a change that the kind has made itself.
func (r *Region) Keep(change nf.Change) { r.attempt.KeepChanges([]nf.Change{change}) }

// Report reports the progress of the step.
func (r *Region) Report(message string) {
	r.attempt.Progress(func(s *nf.Step) { s.Report(message) })
}

// Warn adds a warning to the operation, once.
func (r *Region) Warn(warning string) {
	r.attempt.Note(func(op *nf.Operation) {
		if !slices.Contains(op.Warnings, warning) {
			op.Warnings = append(op.Warnings, warning)
		}
	})
}

// Apply applies objects with the owner label of the resource, and waits until they are
// ready.
func (r *Region) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	owner := r.attempt.Op().Subject
	for _, obj := range objects {
		render.Tag(obj, owner)
	}
	changes, err := r.Cluster.Apply(ctx, owner, objects)
	r.attempt.KeepChanges(changes)
	if err != nil {
		return err
	}
	return r.await(ctx, changes, nf.Current)
}

// Delete deletes objects of the resource, and waits until they are gone.
func (r *Region) Delete(ctx context.Context, refs []nf.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	changes, err := r.Cluster.Delete(ctx, r.attempt.Op().Subject, refs)
	r.attempt.KeepChanges(changes)
	if err != nil {
		return err
	}
	return r.await(ctx, slices.DeleteFunc(slices.Clone(changes), func(c nf.Change) bool { return c.Action != nf.Deleted }), nf.Absent)
}

// await waits until objects have a status.
func (r *Region) await(ctx context.Context, targets []nf.Change, wanted nf.Status) error {
	if len(targets) == 0 {
		return nil
	}
	owner, open := r.attempt.Op().Subject, map[string]nf.Health{} // as they were last seen
	for _, t := range targets {
		open[t.Key()] = nf.Health{Ref: t.Ref, Status: nf.Unknown}
	}
	for h, err := range r.Cluster.Watch(ctx, owner, targets) {
		switch {
		case err != nil && ctx.Err() != nil:
			return r.overdue(open)
		case err != nil:
			return err
		case h.Status == wanted:
			delete(open, h.Key())
		case h.Status == nf.StatusFailed && wanted == nf.Current:
			return nf.E(nf.Failed, "create", owner.Noun(), nf.Violations{{Object: h.Ref, Message: h.Message}})
		default:
			open[h.Key()] = h
			r.Report(h.Ref.String() + " is " + string(h.Status) + ": " + h.Message)
		}
		if len(open) == 0 {
			return nil
		}
	}
	return r.overdue(open)
}

// overdue returns the error for objects that did not have the awaited status in time. A
// deletion can wait for a finalizer for ever: its controller does not run.
func (r *Region) overdue(open map[string]nf.Health) error {
	var v nf.Violations
	for _, key := range slices.Sorted(maps.Keys(open)) {
		h := open[key]
		v = append(v, nf.Violation{Object: h.Ref, Message: strings.TrimSuffix("is "+string(h.Status)+": "+h.Message, ": ")})
	}
	op := r.attempt.Op()
	return nf.E(nf.Timeout, string(op.Verb), op.Subject.Noun(), v)
}

// RefsOf returns the refs of objects.
func RefsOf(objects []*unstructured.Unstructured) []nf.Ref {
	var out []nf.Ref
	for _, obj := range objects {
		out = append(out, nf.RefOf(obj))
	}
	return out
}

func contains(refs []nf.Ref, ref nf.Ref) bool {
	return slices.ContainsFunc(refs, func(r nf.Ref) bool { return r.Key() == ref.Key() })
}

// union returns the refs of both lists.
func union(a, b []nf.Ref) []nf.Ref {
	out := slices.Clone(a)
	for _, ref := range b {
		if !contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}
