package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	apps "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// asImmutable returns nf.Conflict with reason "immutable" if the API server
// rejected only a change of an immutable field in the owner's existing object;
// otherwise it returns the rejection itself. The reason is missing if the deletion of
// the object would also delete data. API servers have no code for the
// difference. Therefore it sends the object under a new name as a dry
// run: if that fails for any reason, the object counts as invalid, because an
// object reported as immutable may be deleted to replace it.
func (a *application) asImmutable(ctx context.Context, refusal error) error {
	status, ok := errors.AsType[*apierrors.StatusError](refusal)
	if !ok || !apierrors.IsInvalid(refusal) || !a.target.kind.replaceable() {
		return refusal
	}
	renamed := *a
	renamed.object = a.object.DeepCopy()
	renamed.object.SetName(freshName(a.object.GetName()))
	renamed.target.ref = nf.RefOf(renamed.object)
	build, err := renamed.dryRun()
	if err != nil {
		return refusal
	}
	got, err := a.client.send(ctx, func() *rest.Request { return build().SetHeader("Accept", acceptMeta) }, nil)
	if err != nil || got.code != http.StatusCreated {
		return refusal
	}
	lost, err := a.wouldLoseClaims(ctx)
	if err != nil {
		return refusal
	}
	rejected := &nf.Error{Kind: nf.Conflict, Op: "change", Subject: a.target.ref.String(), Reason: nf.ReasonImmutable, Err: violations(a.target.ref, status.Status())}
	if lost {
		rejected.Reason = ""
		rejected.Err = append(violations(a.target.ref, status.Status()), nf.Violation{
			Object: a.target.ref, Field: "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Message: "is Delete in the cloud region, so its claims would be deleted if it were recreated",
		})
	}
	return rejected
}

// wouldLoseClaims reports whether the deletion of the existing object would also delete
// claims, with their data.
func (a *application) wouldLoseClaims(ctx context.Context) (bool, error) {
	if runs(a.target.kind.GroupKind()) != "StatefulSet" {
		return false, nil
	}
	var live apps.StatefulSet
	err := a.client.get(ctx, a.target, &live)
	policy := live.Spec.PersistentVolumeClaimRetentionPolicy
	return policy != nil && policy.WhenDeleted == apps.DeletePersistentVolumeClaimRetentionPolicyType, err
}

// replaceable reports whether an object of the kind can be deleted and
// recreated without deleting others' objects, as a namespace or a CRD would.
func (k kind) replaceable() bool { return k.namespaced || clusterWide[k.GroupKind()] }

// clusterWide are cluster-scoped kinds whose deletion deletes no other objects.
var clusterWide = map[schema.GroupKind]bool{
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              true,
}

// freshName returns an unused name that starts like name and is short enough
// for every kind.
func freshName(name string) string {
	const longest = 40
	name = strings.TrimRight(name[:min(len(name), longest)], "-.")
	return name + "-" + strings.ToLower(rand.Text()[:8])
}
