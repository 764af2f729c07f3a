package lifecycle_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
)

// crashingCluster is the cluster as a process reaches it that may die.
type crashingCluster struct {
	*fakeCluster

	process *operationtest.Process
}

// each makes a call about several objects. The process may die when it is carried
// out for one half of them.
func each[T any](c crashingCluster, what string, of []T, call func([]T) ([]nf.Change, error)) ([]nf.Change, error) {
	return operationtest.Call(c.process, what,
		func() ([]nf.Change, error) { return call(of) },
		func() ([]nf.Change, error) { return call(of[:len(of)/2]) })
}

func (c crashingCluster) Apply(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return each(c, "apply", objects, func(objects []*unstructured.Unstructured) ([]nf.Change, error) {
		return c.fakeCluster.Apply(ctx, owner, objects)
	})
}

// ApplyNew of a process that has stalled may meet the objects of its successor. Both
// have the same objects, so that it changes nothing.
func (c crashingCluster) ApplyNew(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return each(c, "apply", objects, func(objects []*unstructured.Unstructured) ([]nf.Change, error) {
		if c.process.Stalled() {
			return c.fakeCluster.Apply(ctx, owner, objects)
		}
		return c.fakeCluster.ApplyNew(ctx, owner, objects)
	})
}

func (c crashingCluster) Ensure(ctx context.Context, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	return each(c, "ensure", objects, func(objects []*unstructured.Unstructured) ([]nf.Change, error) {
		return c.fakeCluster.Ensure(ctx, objects)
	})
}

func (c crashingCluster) Delete(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	return each(c, "delete", refs, func(refs []nf.Ref) ([]nf.Change, error) { return c.fakeCluster.Delete(ctx, owner, refs) })
}

func (c crashingCluster) Orphan(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.Change, error) {
	return each(c, "orphan", refs, func(refs []nf.Ref) ([]nf.Change, error) { return c.fakeCluster.Orphan(ctx, owner, refs) })
}

func (c crashingCluster) Adopt(ctx context.Context, owner nf.Subject, selector nf.AdoptionSelector, refs []nf.Ref) ([]nf.Change, error) {
	return each(c, "adopt", refs, func(refs []nf.Ref) ([]nf.Change, error) {
		return c.fakeCluster.Adopt(ctx, owner, selector, refs)
	})
}

func (c crashingCluster) Correct(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, ignore []nf.DriftIgnore) ([]nf.Change, error) {
	return each(c, "correct", objects, func(objects []*unstructured.Unstructured) ([]nf.Change, error) {
		return c.fakeCluster.Correct(ctx, owner, objects, ignore)
	})
}

func (c crashingCluster) Set(ctx context.Context, owner nf.Subject, settings []nf.Setting, dryRun bool) ([]nf.Change, error) {
	if dryRun {
		return c.fakeCluster.Set(ctx, owner, settings, dryRun)
	}
	return each(c, "set", settings, func(settings []nf.Setting) ([]nf.Change, error) {
		return c.fakeCluster.Set(ctx, owner, settings, false)
	})
}

func (c crashingCluster) Evict(ctx context.Context, owner nf.Subject, pod nf.HealPod, task nf.HealTask) (nf.Change, error) {
	return operationtest.Call(c.process, "evict", func() (nf.Change, error) { return c.fakeCluster.Evict(ctx, owner, pod, task) }, nil)
}

func (c crashingCluster) EnsureNamespace(ctx context.Context, namespace, project string) (nf.Namespace, error) {
	return operationtest.Call(c.process, "ensure namespace "+namespace, func() (nf.Namespace, error) {
		return c.fakeCluster.EnsureNamespace(ctx, namespace, project)
	}, nil)
}

func (c crashingCluster) RemoveNamespace(ctx context.Context, namespace string) ([]nf.Ref, error) {
	return operationtest.Call(c.process, "remove namespace "+namespace, func() ([]nf.Ref, error) {
		return c.fakeCluster.RemoveNamespace(ctx, namespace)
	}, nil)
}
