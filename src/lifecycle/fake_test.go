package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// fakeCluster is an in-memory lifecycle.Cluster: objects become Current as soon
// as they are applied, unless a script says otherwise. What the real one does
// is tested against a real API server.
type fakeCluster struct {
	mu           sync.Mutex
	changed      chan struct{} // closed at every change
	objects      map[string]*fakeObject
	namespaces   map[string]nf.Namespace
	lookups      map[string]map[string]any    // what templates find, by "Kind namespace/name"
	diffed       []*unstructured.Unstructured // what the last preview compared
	dryRunResult dryRunResult                 // the result of each dry run
	dryRunNames  []string                     // the owner's names in the last dry run
	created      []string                     // what was applied as new
	misused      []string                     // objects that were applied as new although the owner had them
	calls        []string                     // what was asked for, in order

	applyErr    map[string]error  // by object name
	fails       map[string]error  // what a call fails with once
	rejects     map[string]string // by object name: a value that no field can be set to, or the disruption budget of a pod
	pods        []nf.Pod          // of the instance, in addition to the objects
	late        map[string]bool   // by uid: pods that were removed, and that the status of their workloads still counts
	status      map[string]health // by object name, instead of Current
	finalizer   map[string]bool   // by object name: deletion never completes
	remains     map[string]string // by object name: why it is orphaned when it is to be deleted
	blockers    map[string]nf.Pod // by object name: one of pods; the object is not ready before it is removed
	fixed       map[string]bool   // by object name or Ref.Key: its fields cannot be changed
	preflight   error
	diff        []nf.Field  // of every object
	unready     []nf.Health // the pods that Unready finds
	unreadyErr  error
	volumesErr  error
	unreachable error             // returned by everything
	before      func(call string) // runs before each call is served
}

type health struct {
	status  nf.Status
	message string
}

type fakeObject struct {
	owner    nf.Subject
	former   nf.Subject // the owner that has let go of it
	object   *unstructured.Unstructured
	deleting bool
}

var _ lifecycle.Cluster = (*fakeCluster)(nil)

func newFakeCluster() *fakeCluster {
	return &fakeCluster{
		changed: make(chan struct{}), objects: map[string]*fakeObject{}, namespaces: map[string]nf.Namespace{},
		applyErr: map[string]error{}, status: map[string]health{}, finalizer: map[string]bool{}, fixed: map[string]bool{},
	}
}

// configMap names a ConfigMap of the namespace ns, which is what the tests'
// packages are made of.
func configMap(name string) nf.Ref {
	return nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name}
}

// enter serves one call under the lock.
func (c *fakeCluster) enter(ctx context.Context, call string) (leave func(), err error) {
	if c.before != nil {
		c.before(call)
	}
	c.mu.Lock()
	c.calls = append(c.calls, call)
	if err := errors.Join(c.unreachable, ctx.Err()); err != nil {
		c.mu.Unlock()
		return nil, nf.E(nf.Unreachable, "reach", "the region", err)
	}
	if err := c.fails[call]; err != nil {
		delete(c.fails, call)
		c.mu.Unlock()
		return nil, err
	}
	return c.mu.Unlock, nil
}

func (c *fakeCluster) touch() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// place gives an object the namespace that its scope asks for, and holds it
// against the bounds.
func place(obj *unstructured.Unstructured, bounds nf.Bounds) error {
	switch {
	case clusterScoped(obj.GetKind()):
		obj.SetNamespace("")
	case obj.GetNamespace() == "":
		obj.SetNamespace(bounds.Namespace)
	}
	if v := bounds.Outside(nf.RefOf(obj)); v != nil {
		return nf.E(nf.Invalid, "apply", "objects", v)
	}
	if v := bounds.Denied(nf.RefOf(obj)); v != nil {
		return bounds.Tenancy.Refuse(v)
	}
	return nil
}

func (c *fakeCluster) Namespaces(ctx context.Context, names []string) (map[string]nf.Namespace, error) {
	leave, err := c.enter(ctx, "namespaces")
	if err != nil {
		return nil, err
	}
	defer leave()
	out := map[string]nf.Namespace{}
	for _, name := range names {
		if is, there := c.namespaces[name]; there {
			out[name] = is
		}
	}
	return out, nil
}

func (c *fakeCluster) Scope(_ context.Context, ref nf.Ref) (namespaced, served bool, err error) {
	return !clusterScoped(ref.Kind), ref.Kind != "unknown", nil
}

func clusterScoped(kind string) bool { return kind == "wide" || kind == "Namespace" }

func (c *fakeCluster) Preflight(ctx context.Context, owner nf.Subject, bounds nf.Bounds, objects []*unstructured.Unstructured) (existing int, err error) {
	leave, err := c.enter(ctx, "preflight")
	if err != nil {
		return 0, err
	}
	defer leave()
	if c.preflight != nil {
		return 0, c.preflight
	}
	var v nf.Violations
	for _, obj := range objects {
		if err := place(obj, bounds); err != nil {
			return 0, err
		}
		if obj.GetLabels()[nf.OwnerLabel] == "" {
			continue // it will have no owner
		}
		live, ok := c.objects[nf.RefOf(obj).Key()]
		if ok {
			existing++
		}
		if ok && live.owner != owner && live.former != owner {
			v = append(v, nf.Violation{Object: nf.RefOf(obj)}.Saying(nf.Textf("belongs to %s", nf.Mention(live.owner.ID))))
		}
	}
	if len(v) > 0 {
		return 0, nf.E(nf.Conflict, "apply", "objects", v)
	}
	return existing, nil
}

// ApplyNew fails if the owner has one of the objects, because it must not be
// called then.
func (c *fakeCluster) ApplyNew(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	c.mu.Lock()
	for _, obj := range objects {
		if live := c.objects[nf.RefOf(obj).Key()]; live != nil && (live.owner == owner || live.former == owner) {
			c.misused = append(c.misused, nf.RefOf(obj).String())
		}
	}
	c.created = append(c.created, names(objects))
	c.mu.Unlock()
	return c.Apply(ctx, owner, objects)
}

func (c *fakeCluster) Diff(ctx context.Context, _ nf.Subject, selector nf.AdoptionSelector, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	leave, err := c.enter(ctx, "diff")
	if err != nil {
		return nil, err
	}
	defer leave()
	c.diffed = objects
	var out []nf.Change
	for _, obj := range objects {
		if err := c.immutable(obj); err != nil {
			return nil, err
		}
		change := nf.Change{Ref: nf.RefOf(obj), Action: c.action(obj), Fields: slices.Clone(c.diff)}
		if live := c.objects[change.Key()]; live != nil && live.owner.ID == "" && selector.Unowned {
			change.Action, change.Message = nf.Adopted, "was left in place"
		}
		out = append(out, change)
	}
	return out, nil
}

func (c *fakeCluster) action(obj *unstructured.Unstructured) nf.Action {
	live, ok := c.objects[nf.RefOf(obj).Key()]
	switch {
	case !ok:
		return nf.Created
	case fmt.Sprint(live.object.Object) == fmt.Sprint(obj.Object):
		return nf.Unchanged
	}
	return nf.Configured
}

func (c *fakeCluster) Apply(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	leave, err := c.enter(ctx, "apply "+names(objects))
	if err != nil {
		return nil, err
	}
	defer leave()
	defer c.touch()
	var out []nf.Change
	for _, obj := range objects {
		if err := c.applyErr[obj.GetName()]; err != nil {
			return out, err
		}
		ref := nf.RefOf(obj)
		if err := c.immutable(obj); err != nil {
			return out, err
		}
		out = append(out, nf.Change{Ref: ref, Action: c.action(obj)})
		c.objects[ref.Key()] = &fakeObject{owner: owner, object: obj.DeepCopy()}
	}
	return out, nil
}

// immutable refuses to change an object whose fields cannot be changed.
func (c *fakeCluster) immutable(obj *unstructured.Unstructured) error {
	ref := nf.RefOf(obj)
	if !c.fixed[ref.Name] && !c.fixed[ref.Key()] || c.action(obj) != nf.Configured {
		return nil
	}
	return &nf.Error{Kind: nf.Conflict, Op: "apply", Subject: ref.String(), Reason: "immutable",
		Err: nf.Violations{{Object: ref, Field: "data", Message: "field is immutable"}}}
}

func names(objects []*unstructured.Unstructured) string {
	var out []string
	for _, obj := range objects {
		out = append(out, obj.GetName())
	}
	return fmt.Sprint(out)
}

func (c *fakeCluster) Delete(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	var asked []string
	for _, ref := range refs {
		asked = append(asked, ref.Name)
	}
	leave, err := c.enter(ctx, "delete "+fmt.Sprint(asked))
	if err != nil {
		return nil, err
	}
	defer leave()
	defer c.touch()
	var out []nf.Change
	for _, ref := range refs {
		live, ok := c.objects[ref.Key()]
		change := nf.Change{Ref: ref, Action: nf.Deleted}
		switch {
		case !ok:
			change.Action = nf.Unchanged
		case live.owner != owner:
			change.Action = nf.Kept
		case c.finalizer[ref.Name]:
			live.deleting = true
		case c.remains[ref.Name] != "":
			change.Action, change.Message, live.owner, live.former = nf.Orphaned, c.remains[ref.Name], nf.Subject{}, owner
		default:
			delete(c.objects, ref.Key())
		}
		out = append(out, change)
	}
	return out, nil
}

func (c *fakeCluster) Orphan(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	leave, err := c.enter(ctx, "orphan")
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []nf.Change
	for _, ref := range refs {
		change := nf.Change{Ref: ref, Action: nf.Unchanged}
		if live, ok := c.objects[ref.Key()]; ok {
			change.Action = nf.Kept
			if live.owner == owner {
				change.Action, live.owner, live.former = nf.Orphaned, nf.Subject{}, owner
			}
		}
		out = append(out, change)
	}
	return out, nil
}

func (c *fakeCluster) EnsureNamespace(ctx context.Context, namespace, project string) (nf.Namespace, error) {
	leave, err := c.enter(ctx, "ensure namespace "+namespace)
	if err != nil {
		return nf.Namespace{}, err
	}
	defer leave()
	if _, there := c.namespaces[namespace]; !there {
		c.namespaces[namespace] = nf.Namespace{Created: true, Project: project}
	}
	return c.namespaces[namespace], nil
}

func (c *fakeCluster) RemoveNamespace(ctx context.Context, namespace string) ([]nf.Ref, error) {
	leave, err := c.enter(ctx, "remove namespace "+namespace)
	if err != nil {
		return nil, err
	}
	defer leave()
	var kept []nf.Ref
	for _, live := range c.objects {
		if live.object.GetNamespace() == namespace {
			kept = append(kept, nf.RefOf(live.object))
		}
	}
	slices.SortFunc(kept, nf.Ref.Compare)
	if len(kept) == 0 && c.namespaces[namespace].Created {
		delete(c.namespaces, namespace)
	}
	return kept, nil
}

func (c *fakeCluster) Health(ctx context.Context, _ nf.Subject, refs []nf.Ref) ([]nf.Health, error) {
	leave, err := c.enter(ctx, "health")
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]nf.Health, len(refs))
	for i, ref := range refs {
		out[i] = c.health(ref)
	}
	return out, nil
}

func (c *fakeCluster) health(ref nf.Ref) nf.Health {
	live, ok := c.objects[ref.Key()]
	switch script, scripted := c.status[ref.Name]; {
	case !ok:
		return nf.Health{Ref: ref, Status: nf.Absent}
	case live.deleting:
		return nf.Health{Ref: ref, Status: nf.StatusDeleting, Message: "a finalizer holds it"}
	case slices.ContainsFunc(c.pods, func(p nf.Pod) bool { return p.UID != "" && p.UID == c.blockers[ref.Name].UID }):
		pod := c.blockers[ref.Name]
		return nf.Health{Ref: ref, Status: nf.InProgress, Blocker: nf.HealPod{Ref: pod.Ref, UID: pod.UID, Workload: ref}}
	case scripted:
		return nf.Health{Ref: ref, Status: script.status, Message: script.message}
	}
	return nf.Health{Ref: ref, Status: nf.Current, Done: ref.Kind == "Job" || ref.Kind == "Pod"}
}

func (c *fakeCluster) Watch(ctx context.Context, _ nf.Subject, targets []nf.Change) iter.Seq2[nf.Health, error] {
	return func(yield func(nf.Health, error) bool) {
		for {
			c.mu.Lock()
			seen := make([]nf.Health, len(targets))
			for i, target := range targets {
				seen[i] = c.health(target.Ref)
				if slices.ContainsFunc(target.Former, func(uid string) bool { return c.late[uid] }) {
					seen[i].Status = nf.InProgress
				}
			}
			changed, away := c.changed, c.unreachable
			c.mu.Unlock()
			if away != nil {
				yield(nf.Health{}, nf.E(nf.Unreachable, "watch", "the region", away))
				return
			}
			for _, h := range seen {
				if !yield(h, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}
