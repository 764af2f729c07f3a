package lifecycle_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Drift compares the whole content of objects: their one field is data.
func (c *fakeCluster) Drift(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, ignore []nf.DriftIgnore) ([]nf.Drift, error) {
	leave, err := c.enter(ctx, "drift "+names(objects))
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]nf.Drift, len(objects))
	for i, obj := range objects {
		out[i] = c.drift(owner, obj, ignore)
	}
	return out, nil
}

func (c *fakeCluster) drift(owner nf.Subject, obj *unstructured.Unstructured, ignore []nf.DriftIgnore) nf.Drift {
	d := nf.Drift{Ref: nf.RefOf(obj)}
	live, ok := c.objects[d.Key()]
	for _, i := range ignore {
		if i.Covers(d.Ref, "data") {
			return d
		}
	}
	switch {
	case !ok:
		d.Missing = true
	case live.owner != owner:
		d.Message = "it belongs to another owner"
	case fmt.Sprint(live.object.Object) != fmt.Sprint(obj.Object):
		d.Fields = []nf.DriftField{{Path: "data", Applied: obj.Object["data"], Found: live.object.Object["data"], Manager: "kubectl-edit"}}
	}
	return d
}

func (c *fakeCluster) Correct(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, ignore []nf.DriftIgnore) ([]nf.Change, error) {
	found, err := c.Drift(ctx, owner, objects, ignore)
	if err != nil {
		return nil, err
	}
	var out []nf.Change
	for i, d := range found {
		change := nf.Change{Ref: d.Ref, Action: nf.Unchanged, Message: d.Message}
		if d.Any() && d.Message == "" {
			applied, err := c.Apply(ctx, owner, objects[i:i+1])
			if err != nil {
				return append(out, applied...), err
			}
			change = applied[0]
		}
		out = append(out, change)
	}
	return out, nil
}

// meddle changes an object as another client does.
func (c *fakeCluster) meddle(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		if o.object.GetName() == name {
			o.object = o.object.DeepCopy()
			nf.SetAt(o.object.Object, "/data/meddled", value)
		}
	}
	c.touch()
}

// disown gives an object to another owner.
func (c *fakeCluster) disown(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.objects {
		if o.object.GetName() == name {
			o.owner = nf.Subject{Kind: nf.InstanceSubject, ID: "theirs"}
		}
	}
}
