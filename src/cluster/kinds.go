package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// kind is one version of a kind that the API server serves.
type kind struct {
	schema.GroupVersionKind

	resource   string // "deployments"
	namespaced bool
	verbs      []string
}

// can reports whether the kind has all of the verbs.
func (k kind) can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains(k.verbs, v) })
}

func (k kind) gvr() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.resource)
}

// at directs a request to an object, or to all of them when name is empty; of all
// namespaces when namespace is. A name that would lead elsewhere, because it is
// more than one segment of a path, fails the request before it is sent.
func (k kind) at(r *rest.Request, namespace, name string) *rest.Request {
	if k.Group == "" {
		r.AbsPath("/api", k.Version)
	} else {
		r.AbsPath("/apis", k.Group, k.Version)
	}
	if r.Resource(k.resource); k.namespaced && namespace != "" {
		r.Namespace(namespace)
	}
	if name != "" {
		r.Name(name)
	}
	return r
}

// kinds is everything that the API server serves.
type kinds struct {
	by      map[schema.GroupKind][]kind // the preferred version first
	partial error                       // some groups could not be read
}

// hidden reports whether a group could not be read.
func (ks *kinds) hidden(group string) bool {
	failed, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](ks.partial)
	if !ok {
		return false
	}
	for gv := range failed.Groups {
		if gv.Group == group {
			return true
		}
	}
	return false
}

// exact returns a kind in the version that is asked for.
func (ks *kinds) exact(gvk schema.GroupVersionKind) (kind, bool) {
	for _, k := range ks.by[gvk.GroupKind()] {
		if k.Version == gvk.Version {
			return k, true
		}
	}
	return kind{}, false
}

// any returns a kind in the version that is asked for, or else in another one:
// an object can be found, watched and removed in every version that is served.
func (ks *kinds) any(gvk schema.GroupVersionKind) (kind, bool) {
	if k, ok := ks.exact(gvk); ok {
		return k, true
	}
	if all := ks.by[gvk.GroupKind()]; len(all) > 0 {
		return all[0], true
	}
	return kind{}, false
}

// serves reports whether lookup finds every kind.
func serves(lookup func(schema.GroupVersionKind) (kind, bool), gvks []schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(gvks, func(gvk schema.GroupVersionKind) bool {
		_, ok := lookup(gvk)
		return !ok
	})
}

// lookup returns what the API server serves. It is read once, and again when a
// kind is asked for that is not in it: it may be new.
func (c *Cluster) lookup(ctx context.Context, gvks []schema.GroupVersionKind) (*kinds, error) {
	c.knows.mu.Lock()
	known := c.knows.kinds
	c.knows.mu.Unlock()
	if known != nil && serves(known.exact, gvks) {
		return known, nil
	}
	return c.discover(ctx)
}

// discover reads what the API server serves, now.
func (c *Cluster) discover(ctx context.Context) (*kinds, error) {
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	err := c.turn(ctx, c.guard.share.survey, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errSlow)
		defer cancel()
		groups, lists, err = discovery.ServerGroupsAndResourcesWithContext(ctx, surveyor{c.discovery, c.guard.share.versions})
		return err
	})
	ks := &kinds{by: map[schema.GroupKind][]kind{}}
	if discovery.IsGroupDiscoveryFailedError(err) {
		// One aggregated API that is down must not hide all the others.
		ks.partial = err
	} else if err != nil {
		return nil, c.fail(ctx, "read the API of", c.name(), err)
	}
	for _, list := range lists {
		ks.add(list)
	}
	for _, group := range groups {
		ks.prefer(group)
	}
	c.knows.mu.Lock()
	c.knows.kinds = ks
	c.knows.mu.Unlock()
	return ks, nil
}

// surveyor is a discovery client that does not ask for more groups than there
// can be: old API servers are asked for each of them, all at once.
type surveyor struct {
	*discovery.DiscoveryClient

	most int // versions of groups
}

// GroupsAndMaybeResourcesWithContext implements
// discovery.AggregatedDiscoveryInterfaceWithContext.
func (s surveyor) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	groups, resources, failed, err := s.DiscoveryClient.GroupsAndMaybeResourcesWithContext(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	versions := 0
	for _, group := range groups.Groups {
		versions += len(group.Versions)
	}
	if versions > s.most {
		return nil, nil, nil, &oversized{what: "the versions of its API", limit: fmt.Sprint(s.most)}
	}
	return groups, resources, failed, nil
}

// forgetKinds makes the next lookup read again what the API server serves.
func (c *Cluster) forgetKinds() {
	c.knows.mu.Lock()
	c.knows.kinds = nil
	c.knows.mu.Unlock()
}

func (ks *kinds) add(list *metav1.APIResourceList) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue // a subresource
		}
		gk := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
		ks.by[gk] = append(ks.by[gk], kind{gv.WithKind(r.Kind), r.Name, r.Namespaced, r.Verbs})
	}
}

func (ks *kinds) prefer(group *metav1.APIGroup) {
	preferred := group.PreferredVersion.Version
	for gk, all := range ks.by {
		if gk.Group == group.Name {
			slices.SortStableFunc(all, func(a, b kind) int {
				return rank(a, preferred) - rank(b, preferred)
			})
		}
	}
}

func rank(k kind, preferred string) int {
	if k.Version == preferred {
		return 0
	}
	return 1
}

func gvkOf(r nf.Ref) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

func refOf(u *unstructured.Unstructured) nf.Ref {
	gvk := u.GroupVersionKind()
	return nf.Ref{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

func gvksOf(refs []nf.Ref) []schema.GroupVersionKind {
	out := make([]schema.GroupVersionKind, len(refs))
	for i, r := range refs {
		out[i] = gvkOf(r)
	}
	return out
}
