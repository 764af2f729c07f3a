package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Patcher changes fields of objects of a region.
type Patcher struct{ Cluster *Cluster }

// Patch changes fields of an object by a JSON merge patch, as the object was when it
// was read with Lookup: the patch has metadata.resourceVersion, and metadata.uid. It
// returns nf.Conflict if the object has changed since, and nf.NotFound if it does not
// exist. It does not look at the owner of the object: the caller has read it.
func (p Patcher) Patch(ctx context.Context, ref nf.Ref, patch map[string]any) error {
	c := p.Cluster
	targets, err := c.client.apis.resolveAll(ctx, []nf.Ref{ref})
	if err != nil {
		return err
	}
	if !targets[0].served {
		return nf.E(nf.NotFound, "patch", ref.String(), errors.New("its kind is not served by the cloud region"))
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nf.E(nf.Invalid, "patch", ref.String(), err)
	}
	var now metav1.PartialObjectMetadata
	_, err = c.client.send(ctx, func() *rest.Request {
		return c.client.request(http.MethodPatch, targets[0]).SetHeader("Content-Type", string(types.MergePatchType)).
			Param("fieldManager", userAgent).Param("fieldValidation", metav1.FieldValidationStrict).SetHeader("Accept", acceptMeta).Body(body)
	}, into(&now))
	return c.client.region.failObject(ctx, "patch", ref, err)
}
