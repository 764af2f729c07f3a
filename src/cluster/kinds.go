package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// kind is one version of a kind that the API server serves.
type kind struct {
	schema.GroupVersionKind

	resource   string // "deployments"
	namespaced bool
	verbs      []string
	categories []string // those that a readiness rule names
}

// can reports whether the kind has all of the verbs.
func (k kind) can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains(k.verbs, v) })
}

func (k kind) gvr() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.resource)
}

// at sets the path of a request to an object; to all objects if name is empty;
// of all namespaces if namespace is empty. A name that is not a single path
// segment fails the request before it is sent.
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

// kinds is everything that the API server serves. Regions share it, so it does not
// change once it has been read.
type kinds struct {
	by      map[schema.GroupKind][]kind // the preferred version comes first
	machine string                      // version of machineAPI; empty: it is not served
	partial error                       // set if some groups could not be read
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

// exact returns a kind in exactly the given version.
func (ks *kinds) exact(gvk schema.GroupVersionKind) (kind, bool) {
	for _, k := range ks.by[gvk.GroupKind()] {
		if k.Version == gvk.Version {
			return k, true
		}
	}
	return kind{}, false
}

// any returns a kind in the given version if it is served, otherwise in another
// one: an object can be found, watched and deleted in every served version.
func (ks *kinds) any(gvk schema.GroupVersionKind) (kind, bool) {
	if k, ok := ks.exact(gvk); ok {
		return k, true
	}
	if all := ks.by[gvk.GroupKind()]; len(all) > 0 {
		return all[0], true
	}
	return kind{}, false
}

// serves reports whether lookup finds all of the kinds.
func serves(lookup func(schema.GroupVersionKind) (kind, bool), gvks []schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(gvks, func(gvk schema.GroupVersionKind) bool {
		_, ok := lookup(gvk)
		return !ok
	})
}

// apis is the result of the last API discovery, which is always made as the
// service. All clients of a region share it.
type apis struct {
	region    region
	usage     *usage
	discovery *discovery.DiscoveryClient
	sets      *kindSets
	rules     *readiness.Rules
	clock     func() time.Time

	mu        sync.Mutex
	known     *kinds    // nil: not read yet
	read      time.Time // when known was read
	forgotten uint64    // how often forget was called
}

// kindsTime is the age from which kinds are read again if a group is missing, or a kind
// that a caller only asks about.
const kindsTime = 30 * time.Second

// kinds returns the kinds that the API server serves. They are cached, and read
// again if a requested kind is missing, because it may be new. If no kind is requested,
// they are read again when they are older than kindsTime and some groups could not be
// read.
func (a *apis) kinds(ctx context.Context, gvks []schema.GroupVersionKind) (*kinds, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	if known != nil && serves(known.exact, gvks) && (known.partial == nil || len(gvks) > 0 || !a.old()) {
		return known, nil
	}
	fresh, err := a.discover(ctx)
	if err != nil && known != nil && len(gvks) == 0 {
		return known, nil // it is enough
	}
	return fresh, err
}

// old reports whether the kinds are older than kindsTime.
func (a *apis) old() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clock().Sub(a.read) > kindsTime
}

// recent returns the kinds, which are not older than kindsTime.
func (a *apis) recent(ctx context.Context) (*kinds, error) {
	if a.old() {
		return a.discover(ctx)
	}
	return a.kinds(ctx, nil)
}

// find returns a kind in exactly the given version, and whether it is served. If it is
// missing, the kinds are read again only when they are older than kindsTime: a package
// may ask about many kinds that a region does not serve. find returns nf.Unreachable
// if the group of the kind cannot be read at the moment.
func (a *apis) find(ctx context.Context, gvk schema.GroupVersionKind) (k kind, served bool, err error) {
	ks, err := a.kinds(ctx, nil)
	if err == nil && !serves(ks.exact, []schema.GroupVersionKind{gvk}) && (ks.hidden(gvk.Group) || a.old()) {
		ks, err = a.discover(ctx)
	}
	if err != nil {
		return kind{}, false, err
	}
	if k, served = ks.exact(gvk); !served && ks.hidden(gvk.Group) {
		return kind{}, false, a.unreadable(ctx, ks.partial)
	}
	return k, served, nil
}

// discover reads the kinds that the API server serves, and caches them.
func (a *apis) discover(ctx context.Context) (*kinds, error) {
	began := a.clock()
	var groups []*metav1.APIGroup
	var lists []*metav1.APIResourceList
	err := a.usage.turn(ctx, a.usage.limits.survey, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errSlow)
		defer cancel()
		groups, lists, err = discovery.ServerGroupsAndResourcesWithContext(ctx, boundedDiscovery{a.discovery, a.usage.limits.versions})
		return err
	})
	ks := &kinds{by: map[schema.GroupKind][]kind{}}
	if discovery.IsGroupDiscoveryFailedError(err) {
		// An aggregated API that is down must not hide all others.
		ks.partial = err
	} else if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	for _, list := range lists {
		ks.add(list, a.rules.Categories)
	}
	for _, group := range groups {
		ks.prefer(group)
		if group.Name == machineAPI {
			ks.machine = group.PreferredVersion.Version
		}
	}
	ks = a.sets.share(ks)
	a.mu.Lock()
	a.known, a.read = ks, began
	a.mu.Unlock()
	return ks, nil
}

// forget makes the next call of kinds read them again.
func (a *apis) forget() {
	a.mu.Lock()
	a.known = nil
	a.forgotten++
	a.mu.Unlock()
}

// generation returns a number that changes whenever the kinds are forgotten.
func (a *apis) generation() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.forgotten
}

// unreadable translates the error of a discovery.
func (a *apis) unreadable(ctx context.Context, err error) error {
	return a.region.fail(ctx, "read the API of", a.region.String(), err)
}

// resolveAll finds the kinds of refs, in any served version. It returns
// nf.Unreachable if the group of a kind cannot be read at the moment, because
// objects of the kind may exist.
func (a *apis) resolveAll(ctx context.Context, refs []nf.Ref) ([]target, error) {
	out, hidden, err := a.resolve(ctx, refs)
	for _, why := range hidden {
		return nil, why // they are all equal
	}
	return out, err
}

// resolve is resolveAll for callers that tolerate groups that cannot be read at
// the moment. For their refs, hidden has the error, by Ref.Key; it is the same
// for all.
func (a *apis) resolve(ctx context.Context, refs []nf.Ref) (out []target, hidden map[string]error, err error) {
	ks, err := a.kinds(ctx, gvksOf(refs))
	if err != nil {
		return nil, nil, err
	}
	out, hidden = make([]target, len(refs)), map[string]error{}
	partial := a.unreadable(ctx, ks.partial)
	for i, ref := range refs {
		out[i].ref = ref
		out[i].kind, out[i].served = ks.any(gvkOf(ref))
		if !out[i].served && ks.hidden(ref.Group) {
			hidden[ref.Key()] = partial
		}
	}
	return out, hidden, nil
}

// boundedDiscovery is a discovery client with a limit on group versions. From an
// old API server, it reads each of them with its own request, all in parallel.
type boundedDiscovery struct {
	discovery.AggregatedDiscoveryInterfaceWithContext

	most int // versions of groups
}

// GroupsAndMaybeResourcesWithContext implements
// discovery.AggregatedDiscoveryInterfaceWithContext.
func (s boundedDiscovery) GroupsAndMaybeResourcesWithContext(ctx context.Context) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	groups, resources, failed, err := s.AggregatedDiscoveryInterfaceWithContext.GroupsAndMaybeResourcesWithContext(ctx)
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

// add adds the kinds of a list, with those of their categories that named returns.
func (ks *kinds) add(list *metav1.APIResourceList, named func([]string) []string) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue // a subresource
		}
		gk := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
		ks.by[gk] = append(ks.by[gk], kind{gv.WithKind(r.Kind), r.Name, r.Namespaced, r.Verbs, named(r.Categories)})
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

func gvksOf(refs []nf.Ref) []schema.GroupVersionKind {
	out := make([]schema.GroupVersionKind, len(refs))
	for i, r := range refs {
		out[i] = gvkOf(r)
	}
	return out
}
