package cluster

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Capabilities returns the API server's version and what it serves, as charts
// ask for it. It is read anew whenever the API is.
func (c *Cluster) Capabilities(ctx context.Context) (nf.Capabilities, error) {
	got, err := c.send(ctx, func() *rest.Request { return c.rest.Get().AbsPath("/version") })
	var v version.Info
	if err == nil {
		err = got.into(&v)
	}
	if err != nil {
		return nf.Capabilities{}, fail(ctx, "read the version of", "cloud region", err)
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

// Lookup returns an object as it is, or, without a name, a list of the kind's
// objects, in ref.Namespace or everywhere when that is empty. It is nil when
// there is no such object or no such kind.
func (c *Cluster) Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error) {
	ks, err := c.lookup(ctx, nil)
	if err != nil {
		return nil, err
	}
	k, served := ks.exact(gvkOf(ref))
	if !served {
		return nil, nil
	}
	got, err := c.send(ctx, func() *rest.Request {
		return c.rest.Get().AbsPath(k.path(ref.Namespace, ref.Name)...)
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var out map[string]any
	if err == nil {
		err = got.into(&out)
	}
	if err != nil {
		return nil, failObject(ctx, "look up", ref, err)
	}
	return out, nil
}
