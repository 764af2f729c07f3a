package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

var namespaceKind = kind{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false, nil, nil}

// Namespaces returns those of the named namespaces that exist, by name.
func (c *Cluster) Namespaces(ctx context.Context, names []string) (map[string]nf.Namespace, error) {
	var mu sync.Mutex
	out := map[string]nf.Namespace{}
	err := each(c.service.parallel, len(names), func(i int) error {
		if nf.CheckNamespace("", names[i]) != nil {
			return nil // it cannot exist
		}
		m, found, err := namespace{c.service, namespaceTarget(names[i])}.read(ctx)
		if err == nil && found {
			mu.Lock()
			defer mu.Unlock()
			out[names[i]] = namespaceOf(m)
		}
		return c.service.region.fail(ctx, "look for", "Namespace objects", err)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func namespaceTarget(name string) target {
	return target{nf.Ref{Version: "v1", Kind: "Namespace", Name: name}, namespaceKind, true}
}

func namespaceOf(m *metav1.ObjectMeta) nf.Namespace {
	return nf.Namespace{Created: m.Labels[nf.CreatedByLabel] == nf.CreatedBy, Project: m.Annotations[nf.ProjectAnnotation]}
}

// EnsureNamespace creates the namespace if it does not exist, with
// nf.CreatedByLabel and the project in nf.ProjectAnnotation, and returns its
// present state. It returns nf.Busy if the namespace is being deleted. A namespace
// with the label gets an annotation of nf.RegionAnnotationPrefix, so that no other
// region of the same cluster removes it.
//
// It does not read a namespace that this process has just read: it creates it at
// once if it was missing, and relies on it if the service has not created it.
// The service, in any process, may delete only a namespace that it has created.
func (c *Cluster) EnsureNamespace(ctx context.Context, name, project string) (is nf.Namespace, err error) {
	n := namespace{c.service, namespaceTarget(name)}
	err = n.persist(ctx, "use", func() error {
		is, err = n.ensure(ctx, project)
		return err
	})
	return is, err
}

// RemoveNamespace deletes a namespace that has nf.CreatedByLabel and waits until
// it is gone, even if another client is deleting it. The namespace stays if it
// holds objects other than the cluster's own (the default service account, the
// root CA, events, leases) and controlled objects; these are returned, sorted.
// It stays, too, if another region of the same cluster uses it; then the region
// only removes its annotation. It also stays, with an error, if its contents
// cannot be read completely. RemoveNamespace does nothing if the namespace does not
// exist or lacks the label.
func (c *Cluster) RemoveNamespace(ctx context.Context, name string) (kept []nf.Ref, err error) {
	n := namespace{c.service, namespaceTarget(name)}
	err = n.persist(ctx, "remove", func() error {
		kept, err = n.remove(ctx)
		return err
	})
	return kept, err
}

// namespace is a namespace that the service creates or removes.
type namespace struct {
	client *client
	target target
}

// persist repeats a step while the namespace changes after it was read. The cause may be
// an earlier attempt of the step, whose response was lost, or another client that has just
// started or ceased to use the namespace.
func (n namespace) persist(ctx context.Context, verb string, step func() error) error {
	for i := range attempts {
		if err := step(); nf.KindOf(err) != nf.Conflict {
			return err
		}
		if err := n.client.pause(ctx, backoff(i+1)); err != nil {
			return n.fail(ctx, verb, err)
		}
	}
	return nf.E(nf.Conflict, verb, "namespace "+n.target.ref.Name, errors.New("other clients keep changing it"))
}

// ensure returns nf.Conflict if the namespace changed in the meantime.
func (n namespace) ensure(ctx context.Context, project string) (nf.Namespace, error) {
	seen, known := n.client.answers.namespace(n.target.ref.Name)
	if known && !seen.missing && !seen.deleting && !seen.is.Created {
		return seen.is, nil
	}
	var live *metav1.ObjectMeta
	var found bool
	var err error
	if !known || !seen.missing {
		live, found, err = n.read(ctx)
	}
	if err == nil && !found {
		err = n.create(ctx, project)
		if err == nil {
			return nf.Namespace{Created: true, Project: project}, nil
		}
		if apierrors.IsAlreadyExists(err) { // another client created it first
			live, found, err = n.read(ctx)
		}
	}
	if err == nil && found {
		if err = n.join(ctx, live); apierrors.IsNotFound(err) {
			found, err = false, nil
		}
	}
	switch {
	case err != nil:
		return nf.Namespace{}, n.fail(ctx, "create", err)
	case !found || live.DeletionTimestamp != nil:
		return nf.Namespace{}, nf.E(nf.Busy, "use", "namespace "+n.target.ref.Name, errors.New("it is being deleted"))
	}
	return namespaceOf(live), nil
}

// mark is the annotation that tells that the region uses the namespace.
func (n namespace) mark() string {
	sum := sha256.Sum256([]byte(n.client.region))
	return nf.RegionAnnotationPrefix + hex.EncodeToString(sum[:8])
}

// join marks a namespace that the service has created, unless it is marked. The change
// makes a deletion fail that another region has decided on.
func (n namespace) join(ctx context.Context, live *metav1.ObjectMeta) error {
	_, marked := live.Annotations[n.mark()]
	if marked || live.DeletionTimestamp != nil || !namespaceOf(live).Created {
		return nil
	}
	return n.annotate(ctx, live, string(n.client.region))
}

// annotate sets the mark, or removes it if the value is nil. An account may be allowed to
// create and delete namespaces, and not to change them: then regions of one cluster do not see
// each other.
func (n namespace) annotate(ctx context.Context, live *metav1.ObjectMeta, value any) error {
	_, err := n.client.edit(ctx, n.target, live, map[string]any{"annotations": map[string]any{n.mark(): value}})
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// quit removes the mark.
func (n namespace) quit(ctx context.Context, live *metav1.ObjectMeta) error {
	if _, marked := live.Annotations[n.mark()]; !marked {
		return nil
	}
	err := n.annotate(ctx, live, nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return n.fail(ctx, "remove", err)
}

// isShared reports whether other regions have marked the namespace.
func (n namespace) isShared(live *metav1.ObjectMeta) bool {
	for key := range live.Annotations {
		if strings.HasPrefix(key, nf.RegionAnnotationPrefix) && key != n.mark() {
			return true
		}
	}
	return false
}

// read returns the metadata of the namespace; found is false if it does not
// exist. The answer is remembered.
func (n namespace) read(ctx context.Context) (m *metav1.ObjectMeta, found bool, err error) {
	n.client.answers.forgetNamespace(n.target.ref.Name)
	if m, found, err = n.client.meta(ctx, n.target); err == nil {
		n.client.answers.sawNamespace(n.target.ref.Name, m)
	}
	return m, found, err
}

// create creates the namespace.
func (n namespace) create(ctx context.Context, project string) error {
	made := metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: n.target.ref.Name, Labels: map[string]string{nf.CreatedByLabel: nf.CreatedBy},
			Annotations: map[string]string{nf.ProjectAnnotation: project, n.mark(): string(n.client.region)},
		},
	}
	body, err := json.Marshal(made)
	if err != nil {
		return err
	}
	n.client.answers.forgetNamespace(n.target.ref.Name)
	_, err = n.client.send(ctx, func() *rest.Request {
		return namespaceKind.at(n.client.verb(http.MethodPost), "", "").Param("fieldManager", userAgent).
			SetHeader("Content-Type", "application/json").SetHeader("Accept", acceptMeta).Body(body)
	}, nil)
	if err == nil {
		n.client.answers.sawNamespace(n.target.ref.Name, &made.ObjectMeta)
	}
	return err
}

// remove returns nf.Conflict if the namespace changed in the meantime.
func (n namespace) remove(ctx context.Context) (kept []nf.Ref, err error) {
	live, found, err := n.read(ctx)
	if err != nil {
		return nil, n.fail(ctx, "remove", err)
	}
	if !found || live.Labels[nf.CreatedByLabel] != nf.CreatedBy {
		return nil, nil
	}
	n.client.answers.forgetNamespace(n.target.ref.Name)
	if live.DeletionTimestamp != nil {
		return nil, n.awaitRemoval(ctx, live.UID)
	}
	if n.isShared(live) {
		return nil, n.quit(ctx, live)
	}
	kept, err = n.contents(ctx)
	if err != nil {
		return nil, err
	}
	if len(kept) > 0 {
		return kept, n.quit(ctx, live)
	}
	err = n.client.deleteExact(ctx, n.target, metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}, nil)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, n.fail(ctx, "remove", err)
	}
	return nil, n.awaitRemoval(ctx, live.UID)
}

func (n namespace) fail(ctx context.Context, verb string, err error) error {
	return n.client.region.fail(ctx, verb, "namespace "+n.target.ref.Name, err)
}

// awaitRemoval waits until a namespace that is being deleted is gone.
func (n namespace) awaitRemoval(ctx context.Context, uid types.UID) error {
	set := newStreamSet(n.client, nf.Subject{})
	set.addTarget(namespaceKind.in(""), query{fields: "metadata.name=" + n.target.ref.Name}, n.target.ref.Key())
	var err error
	gone := false
	deleted := nf.Change{Ref: n.target.ref, UID: string(uid), Action: nf.Deleted} // so another namespace of this name does not count
	set.watch(ctx, []nf.Change{deleted}, func(h nf.Health, failure error) bool {
		gone, err = h.Status == nf.Absent && failure == nil, failure
		return !gone && failure == nil
	})
	if err == nil && !gone {
		err = context.Cause(ctx)
	}
	return n.fail(ctx, "remove", err)
}

// contents returns the objects in the namespace, except ambient and incidental
// ones.
func (n namespace) contents(ctx context.Context) ([]nf.Ref, error) {
	ks, err := n.client.apis.discover(ctx) // a kind missing in the cache could hide objects
	if err != nil {
		return nil, err
	}
	if ks.partial != nil {
		return nil, n.client.apis.unreadable(ctx, ks.partial)
	}
	var scopes []scope
	for gk, all := range ks.by {
		if k := all[0]; k.namespaced && k.can("list", "delete") && !ambient[gk] {
			scopes = append(scopes, k.in(n.target.ref.Name))
		}
	}
	var mu sync.Mutex
	refs := map[types.UID]nf.Ref{} // an object may be served by two groups
	err = each(n.client.parallel, len(scopes), func(i int) error {
		err := n.client.visit(ctx, scopes[i], "", func(m *metav1.ObjectMeta) {
			mu.Lock()
			defer mu.Unlock()
			if ref := scopes[i].ref(m); len(refs) < mostFound && !incidental(ref, m) {
				refs[m.UID] = ref
			}
		}, func() {}) // objects deleted in the meantime only keep the namespace for longer
		if apierrors.IsMethodNotSupported(err) {
			return nil
		}
		return n.client.region.fail(ctx, "list", scopes[i].kind.Kind+" objects of namespace "+n.target.ref.Name, err)
	})
	if err != nil {
		return nil, err
	}
	out := slices.Collect(maps.Values(refs))
	slices.SortFunc(out, nf.Ref.Compare)
	return out, nil
}

// ambient are the kinds that the cluster itself maintains in a namespace.
var ambient = map[schema.GroupKind]bool{
	{Kind: "Event"}: true, {Group: "events.k8s.io", Kind: "Event"}: true, {Group: "coordination.k8s.io", Kind: "Lease"}: true,
	{Kind: "Endpoints"}: true, {Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
}

// incidental reports whether an object of a namespace is the cluster's own, or
// is controlled by another object and deleted with it.
func incidental(ref nf.Ref, m *metav1.ObjectMeta) bool {
	core := ref.Group == ""
	return metav1.GetControllerOfNoCopy(m) != nil ||
		core && ref.Kind == "ServiceAccount" && ref.Name == "default" ||
		core && ref.Kind == "ConfigMap" && ref.Name == "kube-root-ca.crt"
}
