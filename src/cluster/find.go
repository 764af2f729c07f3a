package cluster

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// finder finds the targets that exist. It makes one list per scope.
type finder struct {
	client  *client
	targets []target
}

// owned returns the metadata of those targets that exist and are the owner's,
// by Ref.Key.
func (f finder) owned(ctx context.Context, owner nf.Subject) (map[string]*metav1.ObjectMeta, error) {
	wanted := keysOf(f.targets)
	return f.gather(func(p scope) (map[string]*metav1.ObjectMeta, error) {
		found, err := f.client.pick(ctx, p, ownedBy(owner), wanted)
		return found, f.client.region.fail(ctx, "list", p.kind.Kind+" objects", err)
	})
}

// live returns the metadata of those targets that exist, whatever their owner,
// by Ref.Key. For a single target in a scope it gets the object instead of
// listing, as the scope may contain many others.
func (f finder) live(ctx context.Context) (map[string]*metav1.ObjectMeta, error) {
	asked := map[string][]target{}
	for _, t := range f.targets {
		key := t.kind.in(t.ref.Namespace).key()
		asked[key] = append(asked[key], t)
	}
	return f.gather(func(p scope) (map[string]*metav1.ObjectMeta, error) {
		found, err := f.liveIn(ctx, p, asked[p.key()])
		return found, f.client.region.fail(ctx, "look for", p.kind.Kind+" objects", err)
	})
}

func (f finder) liveIn(ctx context.Context, p scope, asked []target) (map[string]*metav1.ObjectMeta, error) {
	if len(asked) > 1 {
		return f.client.pick(ctx, p, "", keysOf(asked))
	}
	m, found, err := f.client.meta(ctx, asked[0])
	if !found {
		return nil, err
	}
	return map[string]*metav1.ObjectMeta{asked[0].ref.Key(): m}, nil
}

// gather calls look for each scope in parallel, and merges the results.
func (f finder) gather(look func(scope) (map[string]*metav1.ObjectMeta, error)) (map[string]*metav1.ObjectMeta, error) {
	scopes := scopesOf(f.targets)
	found := make([]map[string]*metav1.ObjectMeta, len(scopes))
	err := each(f.client.parallel, len(scopes), func(i int) (err error) {
		found[i], err = look(scopes[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	out := map[string]*metav1.ObjectMeta{}
	for _, each := range found {
		maps.Copy(out, each)
	}
	return out, nil
}
