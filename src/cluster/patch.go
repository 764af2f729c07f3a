package cluster

import (
	"context"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Patch changes fields of an object by a JSON merge patch, as the object was when it
// was read with Lookup: the patch has metadata.resourceVersion, and metadata.uid. It
// returns nf.Conflict if the object has changed since, and nf.NotFound if it does not
// exist. It does not look at the owner of the object: the caller has read it.
func (c *Cluster) Patch(ctx context.Context, ref nf.Ref, patch map[string]any) error {
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
	_, err = c.client.send(ctx, func() *rest.Request {
		return c.client.merge(targets[0], userAgent, body).Param("fieldValidation", metav1.FieldValidationStrict).SetHeader("Accept", acceptMeta)
	}, into(new(metav1.PartialObjectMetadata)))
	return c.client.region.failObject(ctx, "patch", ref, err)
}
