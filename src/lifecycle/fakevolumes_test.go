package lifecycle_test

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// VolumeClaims returns the claims that are called data-<set>-<n>, have the label
// "app" of the set, and belong to the owner or to no instance.
func (c *fakeCluster) VolumeClaims(ctx context.Context, owner nf.Subject, refs []nf.Ref, planned []*unstructured.Unstructured) ([]nf.SetClaims, error) {
	leave, err := c.enter(ctx, "volume claims")
	if err != nil {
		return nil, err
	}
	defer leave()
	if c.volumesErr != nil {
		return nil, c.volumesErr
	}
	var out []nf.SetClaims
	for _, ref := range refs {
		live, there := c.objects[ref.Key()]
		known := slices.ContainsFunc(planned, func(obj *unstructured.Unstructured) bool { return nf.RefOf(obj).Key() == ref.Key() })
		if there && live.owner != owner || !there && !known {
			continue
		}
		set := nf.SetClaims{Set: ref, Labels: map[string]string{"app": ref.Name}}
		for _, o := range c.objects {
			is := nf.RefOf(o.object)
			if is.Kind == "PersistentVolumeClaim" && is.Namespace == ref.Namespace && strings.HasPrefix(is.Name, "data-"+ref.Name+"-") &&
				o.object.GetLabels()["app"] == ref.Name && (o.owner.ID == "" || o.owner == owner) {
				set.Claims = append(set.Claims, is)
			}
		}
		slices.SortFunc(set.Claims, nf.Ref.Compare)
		out = append(out, set)
	}
	return out, nil
}

// claim puts a volume claim of a StatefulSet of the namespace ns into the region.
func (c *fakeCluster) claim(name, app string) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "data": map[string]any{"of": app}}}
	u.SetName(name)
	u.SetNamespace("ns")
	u.SetLabels(map[string]string{"app": app})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[nf.RefOf(u).Key()] = &fakeObject{object: u}
}
