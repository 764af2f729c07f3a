package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// asImmutable returns what an API server's refusal of an object means that is
// there and is the owner's: the refusal itself when the object is wrong, or
// nf.Conflict with reason "immutable" when only the change is. API servers have
// no code for the difference, so one is asked whether it would take the object
// under another name, without making it. When it would not, for whatever reason,
// the object counts as wrong: who hears that it is immutable may delete it.
func (c *Cluster) asImmutable(ctx context.Context, owner string, t target, object *unstructured.Unstructured, refusal error) error {
	status, ok := errors.AsType[*apierrors.StatusError](refusal)
	if !ok || !apierrors.IsInvalid(refusal) || !t.kind.replaceable() {
		return refusal
	}
	twin := object.DeepCopy()
	twin.SetName(freshName(object.GetName()))
	body, err := twin.MarshalJSON()
	if err != nil {
		return refusal
	}
	got, err := c.send(ctx, func() *rest.Request {
		return applyRequest(c.rest, target{refOf(twin), t.kind, true}, manager(owner), body).
			Param("force", "true").Param("dryRun", "All").SetHeader("Accept", acceptMeta)
	}, nil)
	if err != nil || got.code != http.StatusCreated {
		return refusal
	}
	return &nf.Error{
		Kind: nf.Conflict, Op: "change", Subject: t.ref.String(), Reason: "immutable", Err: violations(t.ref, status.Status()),
	}
}

// replaceable reports whether an object of the kind can be deleted and made
// again without taking objects of others along, as a namespace or a definition
// would.
func (k kind) replaceable() bool { return k.namespaced || clusterWide[k.GroupKind()] }

// clusterWide are the kinds without a namespace of which nothing else is part.
var clusterWide = map[schema.GroupKind]bool{
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              true,
}

// freshName is a name that nobody has, like another and short enough for every
// kind.
func freshName(name string) string {
	const longest = 40
	name = strings.TrimRight(name[:min(len(name), longest)], "-.")
	return name + "-" + strings.ToLower(rand.Text()[:8])
}
