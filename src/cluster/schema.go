package cluster

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/multicloud-k8s/k8splugin/src/cluster/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// fit checks objects that are to be applied against the region's schemas. live
// has those that exist, by Ref.Key. It returns nf.Invalid, with a violation for
// each field that the API server would reject. Objects that cannot be checked
// are logged, and left to the API server. If the index of the schemas was known
// before the preflight, a violation is checked again with the present index.
func (c *Cluster) fit(ctx context.Context, objects []*unstructured.Unstructured, live map[string]*metav1.ObjectMeta, known bool) error {
	ks, err := c.client.apis.kinds(ctx, nil)
	if err != nil {
		return err
	}
	var checked []schema.Object
	for _, u := range objects {
		if nf.OwnerOf(u.GetLabels()).ID == "" && !brings(ks, u) {
			continue // existing objects without an owner are not changed
		}
		k, _ := ks.exact(u.GroupVersionKind())
		_, exists := live[nf.RefOf(u).Key()]
		checked = append(checked, schema.Object{Unstructured: u, Resource: k.resource, Exists: exists})
	}
	result, err := c.transport.cfg.schemas.Region(schemaSource{c.client, c.service}).Check(ctx, checked)
	if known && err == nil && len(result.Violations)+len(result.Unchecked) > 0 {
		// The schemas may have changed since their index was read.
		c.client.answers.expireIndex()
		result, err = c.transport.cfg.schemas.Region(schemaSource{c.client, c.service}).Check(ctx, checked)
	}
	if err != nil {
		return c.client.region.fail(ctx, "compare", "objects with the schemas of the "+c.client.region.String(), err)
	}
	if n := len(result.Unchecked); n > 0 {
		first := result.Unchecked[0]
		c.transport.cfg.Logger.WarnContext(ctx, "some objects cannot be compared with the cloud region's schemas",
			"region", c.transport.region, "objects", n, "first", first.Object.String(), "error", clipped(first.Reason.Error()))
	}
	return refused(nil, result.Violations)
}

// brings reports whether an object defines a kind that is not served yet.
func brings(ks *kinds, u *unstructured.Unstructured) bool {
	for gvk := range definitions([]*unstructured.Unstructured{u}) {
		if _, served := ks.any(gvk); !served {
			return true
		}
	}
	return false
}

// schemaSource reads what the schema checks of a region need.
type schemaSource struct{ client, service *client }

var _ schema.Source = schemaSource{}

// Index implements schema.Source.
func (s schemaSource) Index(ctx context.Context) ([]byte, error) {
	return s.client.answers.readIndex(ctx, func(ctx context.Context) ([]byte, error) { return s.Document(ctx, "/openapi/v3") })
}

// Document implements schema.Source.
func (s schemaSource) Document(ctx context.Context, link string) ([]byte, error) {
	at, err := url.Parse(link)
	if err != nil {
		return nil, nf.E(nf.Unsupported, "read", "an OpenAPI document", err)
	}
	var text []byte
	_, err = s.service.send(ctx, func() *rest.Request {
		req := s.service.verb(http.MethodGet).AbsPath(at.Path)
		for name, values := range at.Query() {
			req.Param(name, values[0])
		}
		return req
	}, func(body []byte) error { text = bytes.Clone(body); return nil })
	return text, s.withheld(ctx, "an OpenAPI document", err)
}

// mutating are the kinds that configure mutating admission.
var mutating = []k8sschema.GroupVersionKind{
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"},
}

// Mutating implements schema.Source.
func (s schemaSource) Mutating(ctx context.Context) ([]*unstructured.Unstructured, error) {
	ks, err := s.client.apis.kinds(ctx, nil)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, gvk := range mutating {
		k, served := ks.any(gvk)
		if !served {
			continue
		}
		all, err := s.service.whole(ctx, k.in(""), query{})
		if err != nil {
			return nil, s.withheld(ctx, k.Kind+" objects", err)
		}
		defer all.release()
		for i := range all.items {
			out = append(out, &all.items[i])
		}
	}
	return out, nil
}

// Live implements schema.Source.
func (s schemaSource) Live(ctx context.Context, ref nf.Ref) (*unstructured.Unstructured, error) {
	ks, err := s.client.apis.kinds(ctx, nil)
	if err != nil {
		return nil, err
	}
	k, served := ks.exact(gvkOf(ref))
	if !served {
		return nil, nf.E(nf.NotFound, "read", ref.String(), nil)
	}
	out := &unstructured.Unstructured{}
	err = s.client.get(ctx, target{ref, k, true}, out)
	return out, s.withheld(ctx, ref.String(), err)
}

// withheld translates the error of an optional read. It returns nf.Unsupported
// if the region responded, but not with the requested data; otherwise it
// returns the error as fail translates it.
func (s schemaSource) withheld(ctx context.Context, subject string, err error) error {
	translated := s.client.region.fail(ctx, "read", subject, err)
	_, answered := errors.AsType[*apierrors.StatusError](err)
	switch nf.ReasonOf(translated) {
	case nf.ReasonOversized, nf.ReasonNotKubernetes:
		answered = true
	case nf.ReasonUnauthorized:
		answered = false
	}
	if !answered || ctx.Err() != nil || nf.KindOf(translated) == nf.NotFound {
		return translated
	}
	return nf.E(nf.Unsupported, "read", subject, err)
}
