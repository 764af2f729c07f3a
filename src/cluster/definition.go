package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
)

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// inUse returns why a CustomResourceDefinition of the owner must not be deleted: the API
// server would delete objects of its kind that are not the owner's. It is empty if there
// are none. Objects that are created after it are not seen.
func (o *ownedObject) inUse(ctx context.Context) (why string, err error) {
	if o.target.kind.GroupKind() != definitionKind {
		return "", nil
	}
	k, served, err := o.client.apis.defined(ctx, o.target.ref.Name)
	if err != nil || !served {
		return "", err
	}
	key, value := o.owner.Label()
	others, err := labels.NewRequirement(key, selection.NotEquals, []string{value})
	if err != nil {
		return "", err
	}
	count := 0
	err = o.client.visit(ctx, k.in(""), others.String(), func(m *metav1.ObjectMeta) {
		if m.DeletionTimestamp == nil {
			count++
		}
	}, func() { count = 0 })
	switch {
	case isOversized(err):
		return "objects of its kind that do not belong to the owner", nil
	case apierrors.IsForbidden(err), apierrors.IsInternalError(err): // a webhook that converts them may be gone
		return "objects of its kind, which cannot be listed", nil
	case err != nil:
		return "", o.client.region.fail(ctx, "list", k.Kind+" objects", err)
	case count > 0:
		return fmt.Sprintf("objects of its kind that do not belong to the owner: %d", count), nil
	}
	return "", nil
}

// defined returns the kind that a CustomResourceDefinition defines, and whether it is
// served. The kinds are read again, because a cached kind may be missing. It returns
// nf.Unreachable if the group of the kind cannot be read at the moment.
func (a *apis) defined(ctx context.Context, name string) (k kind, served bool, err error) {
	ks, err := a.discover(ctx)
	if err != nil {
		return kind{}, false, err
	}
	gr := schema.ParseGroupResource(name)
	for gk, all := range ks.by {
		if gk.Group == gr.Group && all[0].resource == gr.Resource && all[0].can("list") {
			return all[0], true, nil
		}
	}
	if ks.hidden(gr.Group) {
		return kind{}, false, a.unreadable(ctx, ks.partial)
	}
	return kind{}, false, nil
}
