package cluster

import (
	"context"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Capabilities returns the API server's version and what it serves, as charts
// ask for it. It is read anew whenever the API is.
func (c *Cluster) Capabilities(ctx context.Context) (nf.Capabilities, error) {
	var v version.Info
	_, err := c.send(ctx, func() *rest.Request { return c.rest.Get().AbsPath("/version") }, into(&v))
	if err != nil {
		return nf.Capabilities{}, c.fail(ctx, "read the version of", c.name(), err)
	}
	ks, err := c.lookup(ctx, nil)
	if err != nil {
		return nf.Capabilities{}, err
	}
	out := nf.Capabilities{Version: v.GitVersion}
	for _, all := range ks.by {
		for _, k := range all {
			out.APIs = append(out.APIs, k.GroupVersion().String(), k.GroupVersion().String()+"/"+k.Kind)
		}
	}
	slices.Sort(out.APIs)
	out.APIs = slices.Compact(out.APIs)
	return out, nil
}

// Scope reports whether a kind is served, in the version that is asked for, and
// whether its objects have a namespace.
func (c *Cluster) Scope(ctx context.Context, ref nf.Ref) (namespaced, served bool, err error) {
	ks, err := c.lookup(ctx, nil)
	if err != nil {
		return false, false, err
	}
	k, served := ks.exact(gvkOf(ref))
	return k.namespaced, served, nil
}

// Lookup returns an object as it is, or, without a name, a list of the kind's
// objects, in ref.Namespace or everywhere when that is empty. It is nil when
// there is no such object or no such kind, and nf.Invalid when there cannot be.
func (c *Cluster) Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error) {
	ks, err := c.lookup(ctx, nil)
	if err != nil {
		return nil, err
	}
	k, served := ks.exact(gvkOf(ref))
	if !served {
		return nil, nil
	}
	for field, name := range map[string]string{"namespace": ref.Namespace, "name": ref.Name} {
		if wrong := rest.IsValidPathSegmentName(name); len(wrong) > 0 {
			return nil, nf.E(nf.Invalid, "look up", ref.Kind+" objects", nf.Violations{{Field: field, Message: strconv.Quote(name) + " " + wrong[0]}})
		}
	}
	if ref.Name == "" {
		return c.lookupAll(ctx, k, ref)
	}
	var out map[string]any
	_, err = c.send(ctx, func() *rest.Request {
		return k.at(c.rest.Get(), ref.Namespace, ref.Name)
	}, into(&out))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failObject(ctx, "look up", ref, err)
	}
	return out, nil
}

// lookupAll returns a list of the kind's objects as one object.
func (c *Cluster) lookupAll(ctx context.Context, k kind, ref nf.Ref) (map[string]any, error) {
	found, err := c.whole(ctx, k.in(ref.Namespace), query{})
	if err != nil {
		return nil, c.fail(ctx, "look up", ref.Kind+" objects", err)
	}
	items := make([]any, len(found))
	for i := range found {
		items[i] = found[i].Object
	}
	return map[string]any{"apiVersion": ref.APIVersion(), "kind": ref.Kind + "List", "metadata": map[string]any{}, "items": items}, nil
}
