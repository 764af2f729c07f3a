package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// DryRun sends the objects of an owner to the API server as Apply would, but as
// a server-side dry run, at most PoolConfig.Parallel at a time. It returns
// nf.Invalid, with a violation for each field that the API server rejects.
//
// It returns the objects that the API server did not check: those whose
// namespace does not exist yet, those whose kind is not served yet or is
// defined by another of the objects, those rejected for a reason other than
// their fields, and Services whose port or address is in use by another
// Service. Such a reason may be gone when the object is applied. A change of an
// immutable field is not an error, because Apply reports it with its own
// reason. An object without an owner is neither sent nor returned.
//
// Names are the names of the owner, in an order that is the same for all owners.
// An object is not sent if the API server has recently accepted an object that
// differs only in the names of its owner; see fingerprinter. If names is empty,
// all objects are sent.
func (c *Cluster) DryRun(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, names []string) (unchecked []nf.Ref, err error) {
	prints := newFingerprinter(c.client.user, owner, names)
	var sent []*unstructured.Unstructured
	var digests []digest
	for _, u := range objects {
		if nf.OwnerOf(u.GetLabels()).ID == "" {
			continue // if it exists, it is not applied
		}
		if is := prints.of(u); len(names) == 0 || !c.client.answers.accepts(is) {
			sent, digests = append(sent, u), append(digests, is)
		}
	}
	if len(sent) == 0 {
		return nil, nil
	}
	t := trial{client: c.client, owner: owner, defined: definitions(objects)}
	if t.kinds, err = c.client.apis.kinds(ctx, nil); err != nil {
		return nil, err
	}
	checked, found := make([]bool, len(sent)), make([]nf.Violations, len(sent))
	err = each(c.client.parallel, len(sent), func(i int) (err error) {
		found[i], checked[i], err = t.try(ctx, sent[i], digests[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, u := range sent {
		if !checked[i] {
			unchecked = append(unchecked, nf.RefOf(u))
		}
	}
	return unchecked, refused(nil, slices.Concat(found...))
}

func namespacesIn(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, u := range objects {
		if name := u.GetNamespace(); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// trial is the dry run of an owner's objects.
type trial struct {
	client  *client
	owner   nf.Subject
	kinds   *kinds
	defined map[schema.GroupVersionKind]kind // by CustomResourceDefinitions among the objects
}

// try returns the fields of an object that the API server rejects, and whether
// it has checked the object. It does not retry: the caller sends more requests
// to the region anyway.
func (t trial) try(ctx context.Context, u *unstructured.Unstructured, is digest) (v nf.Violations, checked bool, err error) {
	k, served := t.kinds.exact(u.GroupVersionKind())
	_, changes := t.defined[u.GroupVersionKind()]
	if !served || changes || k.namespaced && t.client.answers.namespaceMissing(u.GetNamespace()) {
		return nil, false, nil
	}
	a := application{client: t.client, owner: t.owner, target: target{nf.RefOf(u), k, true}, object: u}
	build, err := a.dryRun()
	if err != nil {
		return nil, false, err
	}
	var got response
	err = a.client.once(ctx, func() *rest.Request { return build().SetHeader("Accept", acceptMeta) }, &got, nil)
	switch {
	case err == nil:
		a.client.answers.accept(is)
		return nil, true, nil
	case ctx.Err() != nil:
		return nil, false, a.client.region.fail(ctx, "dry-run", a.target.ref.String(), err)
	case !rejectsFields(a.target.kind.GroupKind(), err):
		return nil, false, nil
	}
	if err = a.refusedChange(ctx, err); nf.ReasonOf(err) == nf.ReasonImmutable {
		return nil, true, nil
	}
	return nf.ViolationsOf(a.client.region.failObject(ctx, "dry-run", a.target.ref, err)), true, nil
}

// rejectsFields reports whether an API server rejects an object because of its
// fields, independently of other objects.
func rejectsFields(kind schema.GroupKind, err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsInvalid(err) && status.ErrStatus.Details != nil &&
		slices.ContainsFunc(status.ErrStatus.Details.Causes, func(cause metav1.StatusCause) bool {
			return cause.Field != "" && !allocated(kind, cause.Field)
		})
}

// allocated reports whether each value of a field can be used by only one
// object of the region. The API server rejects a value that is in use, although
// it may be released before this object is applied.
func allocated(kind schema.GroupKind, field string) bool {
	return kind == schema.GroupKind{Kind: "Service"} &&
		(strings.HasSuffix(field, "odePort") || strings.HasPrefix(field, "spec.clusterIP")) // nodePort, healthCheckNodePort
}
