package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var namespaceKind = kind{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false, nil}

// Namespaces returns those of the named namespaces that exist, by name.
func (c *Cluster) Namespaces(ctx context.Context, names []string) (map[string]nf.Namespace, error) {
	var targets []target
	for _, name := range names {
		if nf.CheckNamespace("", name) == nil { // else there can be none
			targets = append(targets, target{nf.Ref{Version: "v1", Kind: "Namespace", Name: name}, namespaceKind, true})
		}
	}
	live, err := c.itself().live(ctx, targets)
	if err != nil {
		return nil, err
	}
	out := map[string]nf.Namespace{}
	for _, m := range live {
		out[m.Name] = namespaceOf(m)
	}
	return out, nil
}

func namespaceOf(m *metav1.ObjectMeta) nf.Namespace {
	return nf.Namespace{Made: m.Labels[nf.MadeByLabel] == nf.MadeBy, Project: m.Annotations[nf.ProjectAnnotation]}
}

// EnsureNamespace creates the namespace when it is missing, with nf.MadeByLabel
// and the project in nf.ProjectAnnotation, and returns it as it is. A namespace
// that is being deleted is nf.Busy.
func (c *Cluster) EnsureNamespace(ctx context.Context, namespace, project string) (nf.Namespace, error) {
	c = c.itself()
	live, found, err := c.meta(ctx, namespaceKind, "", namespace)
	if err == nil && !found {
		err = c.createNamespace(ctx, namespace, project)
		if err == nil {
			return nf.Namespace{Made: true, Project: project}, nil
		}
		if apierrors.IsAlreadyExists(err) { // somebody else was faster
			live, found, err = c.meta(ctx, namespaceKind, "", namespace)
		}
	}
	switch {
	case err != nil:
		return nf.Namespace{}, c.fail(ctx, "create", "namespace "+namespace, err)
	case !found || live.DeletionTimestamp != nil:
		return nf.Namespace{}, nf.E(nf.Busy, "use", "namespace "+namespace, errors.New("it is being deleted"))
	}
	return namespaceOf(live), nil
}

func (c *Cluster) createNamespace(ctx context.Context, namespace, project string) error {
	body, err := json.Marshal(metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Labels: map[string]string{nf.MadeByLabel: nf.MadeBy},
			Annotations: map[string]string{nf.ProjectAnnotation: project},
		},
	})
	if err != nil {
		return err
	}
	_, err = c.send(ctx, func() *rest.Request {
		return namespaceKind.at(c.rest.Post(), "", "").Param("fieldManager", userAgent).
			SetHeader("Content-Type", "application/json").SetHeader("Accept", acceptMeta).Body(body)
	}, nil)
	return err
}

// RemoveNamespace deletes a namespace that bears nf.MadeByLabel, unless it
// holds objects that are neither the cluster's own (the default service
// account, the root CA, events, leases) nor dependents of such; those are
// returned, sorted, and the namespace stays. It stays too, with an error, when
// not everything in it can be seen. One without the label, or none, is left
// alone without an error. It returns when the namespace is gone, also when
// somebody else is deleting it.
func (c *Cluster) RemoveNamespace(ctx context.Context, namespace string) (kept []nf.Ref, err error) {
	c = c.itself()
	for n := range attempts {
		kept, err = c.removeNamespace(ctx, namespace)
		if nf.KindOf(err) != nf.Conflict {
			return kept, err
		}
		// It changed since it was looked at. That may be our own deletion, whose
		// answer was lost; or somebody has just begun to use it.
		if err := c.pause(ctx, backoff(n+1)); err != nil {
			return nil, c.fail(ctx, "remove", "namespace "+namespace, err)
		}
	}
	return nil, nf.E(nf.Conflict, "remove", "namespace "+namespace, errors.New("others keep changing it"))
}

// removeNamespace returns nf.Conflict when the namespace changed meanwhile.
func (c *Cluster) removeNamespace(ctx context.Context, namespace string) (kept []nf.Ref, err error) {
	live, found, err := c.meta(ctx, namespaceKind, "", namespace)
	if err != nil {
		return nil, c.fail(ctx, "remove", "namespace "+namespace, err)
	}
	if !found || live.Labels[nf.MadeByLabel] != nf.MadeBy {
		return nil, nil
	}
	if live.DeletionTimestamp != nil {
		return nil, c.namespaceGone(ctx, namespace, live.UID)
	}
	kept, err = c.contents(ctx, namespace)
	if err != nil || len(kept) > 0 {
		return kept, err
	}
	t := target{ref: nf.Ref{Version: "v1", Kind: "Namespace", Name: namespace}, kind: namespaceKind, served: true}
	err = c.deleteExact(ctx, t, metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, c.fail(ctx, "remove", "namespace "+namespace, err)
	}
	return nil, c.namespaceGone(ctx, namespace, live.UID)
}

// namespaceGone waits until a namespace that is being deleted is gone.
func (c *Cluster) namespaceGone(ctx context.Context, namespace string, uid types.UID) error {
	target := nf.Change{Ref: nf.Ref{Version: "v1", Kind: "Namespace", Name: namespace}, UID: string(uid)}
	v := newView("")
	s := &stream{
		c: c, view: v, place: namespaceKind.in(""), query: query{fields: "metadata.name=" + namespace}, keys: []string{target.Key()},
	}
	var err error
	gone := false
	c.follow(ctx, v, []*stream{s}, []nf.Change{target}, func(h nf.Health, failure error) bool {
		gone, err = h.Status == nf.Absent && failure == nil, failure
		return !gone && failure == nil
	})
	if err == nil && !gone {
		err = context.Cause(ctx)
	}
	return c.fail(ctx, "remove", "namespace "+namespace, err)
}

// contents returns what somebody put into a namespace.
func (c *Cluster) contents(ctx context.Context, namespace string) ([]nf.Ref, error) {
	ks, err := c.discover(ctx) // a kind that came yesterday may hide an object
	if err != nil {
		return nil, err
	}
	if ks.partial != nil {
		return nil, c.fail(ctx, "read the API of", c.name(), ks.partial)
	}
	var places []place
	for gk, all := range ks.by {
		if k := all[0]; k.namespaced && k.can("list", "delete") && !ambient[gk.Kind] {
			places = append(places, k.in(namespace))
		}
	}
	var mu sync.Mutex
	refs := map[types.UID]nf.Ref{} // an object may be served by two groups
	err = each(c.parallel, len(places), func(i int) error {
		err := c.visit(ctx, places[i], "", func(m *metav1.ObjectMeta) {
			mu.Lock()
			defer mu.Unlock()
			if ref := places[i].ref(m); len(refs) < mostFound && !incidental(ref, m) {
				refs[m.UID] = ref
			}
		}, func() {}) // what has gone meanwhile only keeps the namespace for longer
		if apierrors.IsMethodNotSupported(err) {
			return nil
		}
		return c.fail(ctx, "list", places[i].kind.Kind+" objects of namespace "+namespace, err)
	})
	if err != nil {
		return nil, err
	}
	out := slices.Collect(maps.Values(refs))
	slices.SortFunc(out, nf.Ref.Compare)
	return out, nil
}

// ambient are the kinds that a cluster keeps in a namespace by itself.
var ambient = map[string]bool{"Event": true, "Lease": true, "Endpoints": true, "EndpointSlice": true}

// incidental reports whether an object of a namespace is the cluster's own, or
// depends on another object and goes with it.
func incidental(ref nf.Ref, m *metav1.ObjectMeta) bool {
	return metav1.GetControllerOfNoCopy(m) != nil ||
		ref.Kind == "ServiceAccount" && ref.Name == "default" ||
		ref.Kind == "ConfigMap" && ref.Name == "kube-root-ca.crt"
}
