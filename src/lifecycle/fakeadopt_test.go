package lifecycle_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

func (c *fakeCluster) Ensure(ctx context.Context, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	leave, err := c.enter(ctx, "ensure "+names(objects))
	if err != nil {
		return nil, err
	}
	defer leave()
	defer c.touch()
	var out []nf.Change
	for _, obj := range objects {
		ref := nf.RefOf(obj)
		change := nf.Change{Ref: ref, Action: nf.Unchanged}
		if _, there := c.objects[ref.Key()]; !there {
			change.Action = nf.Created
			c.objects[ref.Key()] = &fakeObject{object: obj.DeepCopy()}
		}
		out = append(out, change)
	}
	return out, nil
}

func (c *fakeCluster) Capabilities(context.Context) (nf.Capabilities, error) {
	return nf.Capabilities{Version: "v1.37.1"}, nil
}

func (c *fakeCluster) Lookup(_ context.Context, ref nf.Ref) (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if live, ok := c.objects[ref.Key()]; ok {
		return live.object.DeepCopy().Object, nil
	}
	return (&unstructured.Unstructured{Object: c.lookups[ref.String()]}).DeepCopy().Object, nil
}

func (c *fakeCluster) PreflightAdopt(ctx context.Context, owner nf.Subject, bounds nf.Bounds, selector nf.AdoptionSelector, objects []*unstructured.Unstructured) ([]nf.Change, error) {
	leave, err := c.enter(ctx, "preflight")
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []nf.Change
	for _, obj := range objects {
		if err := place(obj, bounds); err != nil {
			return nil, err
		}
		live, ok := c.objects[nf.RefOf(obj).Key()]
		switch change := (nf.Change{Ref: nf.RefOf(obj), Action: nf.Unchanged, UID: "uid-" + obj.GetName()}); {
		case !ok:
		case live.owner == owner:
			out = append(out, change)
		case !matches(live, selector):
			return nil, nf.E(nf.Conflict, "apply", "objects", nf.Violations{{Field: nf.RefOf(obj).String(), Message: "is somebody else's"}})
		default:
			change.Action, change.Message = nf.Adopted, "was left in place"
			out = append(out, change)
		}
	}
	return out, nil
}

func (c *fakeCluster) Adopt(ctx context.Context, owner nf.Subject, selector nf.AdoptionSelector, refs []nf.Ref) ([]nf.Change, error) {
	leave, err := c.enter(ctx, "adopt")
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []nf.Change
	for _, ref := range refs {
		change := nf.Change{Ref: ref, Action: nf.Unchanged}
		if live, ok := c.objects[ref.Key()]; ok {
			if live.owner != owner && !matches(live, selector) {
				return out, nf.E(nf.Conflict, "adopt", ref.String(), nil)
			}
			live.owner, change.Action, change.UID = owner, nf.Adopted, "uid-"+ref.Name
		}
		out = append(out, change)
	}
	return out, nil
}

func matches(live *fakeObject, selector nf.AdoptionSelector) bool {
	return hasMarks(live.object, selector) || selector.Unowned && live.owner.ID == ""
}

func hasMarks(obj *unstructured.Unstructured, selector nf.AdoptionSelector) bool {
	for key, value := range selector.Labels {
		if obj.GetLabels()[key] != value {
			return false
		}
	}
	return len(selector.Labels) > 0
}
