package cluster

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Capabilities returns the API server's version and APIs, as Helm charts need
// them. Both are at most 30 s old.
func (c *Cluster) Capabilities(ctx context.Context) (nf.Capabilities, error) {
	version, err := c.client.answers.readVersion(ctx, c.client.version)
	if err != nil {
		return nf.Capabilities{}, c.client.region.fail(ctx, "read the version of", c.client.region.String(), err)
	}
	ks, err := c.client.apis.recent(ctx)
	if err != nil {
		return nf.Capabilities{}, err
	}
	out := nf.Capabilities{Version: version}
	for _, all := range ks.by {
		for _, k := range all {
			out.APIs = append(out.APIs, k.GroupVersion().String(), k.GroupVersion().String()+"/"+k.Kind)
		}
	}
	slices.Sort(out.APIs)
	out.APIs = slices.Compact(out.APIs)
	return out, nil
}

// version reads the version of the API server.
func (c *client) version(ctx context.Context) (string, error) {
	var v version.Info
	_, err := c.send(ctx, func() *rest.Request { return c.verb(http.MethodGet).AbsPath("/version") }, into(&v))
	return v.GitVersion, err
}

// Served returns those of the kinds that the API server serves in exactly the given
// versions. The APIs are cached, and read again if one of the kinds is missing.
func (c *Cluster) Served(ctx context.Context, kinds []nf.Ref) ([]nf.Ref, error) {
	ks, err := c.client.apis.kinds(ctx, gvksOf(kinds))
	if err != nil {
		return nil, err
	}
	var out []nf.Ref
	for _, ref := range kinds {
		if _, served := ks.exact(gvkOf(ref)); served {
			out = append(out, ref)
		} else if ks.hidden(ref.Group) {
			return nil, c.client.apis.unreadable(ctx, ks.partial)
		}
	}
	return out, nil
}

// Scope reports whether a kind is served in the given version, and whether it
// is namespaced. That a kind is not served may be known for at most 30 s. Scope returns
// nf.Unreachable if the group of the kind cannot be read at the moment.
func (c *Cluster) Scope(ctx context.Context, ref nf.Ref) (namespaced, served bool, err error) {
	k, served, err := c.client.apis.find(ctx, gvkOf(ref))
	return k.namespaced, served, err
}

// Lookup returns an object, or, if ref.Name is empty, a list of the kind's
// objects in ref.Namespace, or in all namespaces if that is empty. It returns
// nil if the object or the kind does not exist, and nf.Invalid if name or
// namespace is malformed. It finds the kind as Scope does.
func (c *Cluster) Lookup(ctx context.Context, ref nf.Ref) (map[string]any, error) {
	k, served, err := c.client.apis.find(ctx, gvkOf(ref))
	if err != nil || !served {
		return nil, err
	}
	for field, name := range map[string]string{"namespace": ref.Namespace, "name": ref.Name} {
		if wrong := rest.IsValidPathSegmentName(name); len(wrong) > 0 {
			return nil, nf.E(nf.Invalid, "look up", ref.Kind+" objects", nf.Violations{{Field: field, Message: strconv.Quote(name) + " " + wrong[0]}})
		}
	}
	if ref.Name == "" {
		return c.client.lookupAll(ctx, k, ref)
	}
	var out map[string]any
	err = c.client.get(ctx, target{ref, k, true}, &out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.client.region.failObject(ctx, "look up", ref, err)
	}
	return out, nil
}

// lookupAll returns the list of the kind's objects as one List object.
func (c *client) lookupAll(ctx context.Context, k kind, ref nf.Ref) (map[string]any, error) {
	found, err := c.whole(ctx, k.in(ref.Namespace), query{})
	if err != nil {
		return nil, c.region.fail(ctx, "look up", ref.Kind+" objects", err)
	}
	defer found.release()
	items := make([]any, len(found.items))
	for i := range found.items {
		items[i] = found.items[i].Object
	}
	return map[string]any{"apiVersion": ref.APIVersion(), "kind": ref.Kind + "List", "metadata": map[string]any{}, "items": items}, nil
}
