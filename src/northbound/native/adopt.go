package native

import (
	"errors"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// adopt responds as instances.create does.
func (ds dayTwo) adopt(w http.ResponseWriter, r *http.Request) error {
	if ds.engine == nil {
		return nf.E(nf.Unsupported, "adopt", "the release", errors.New("adoption is not enabled"))
	}
	body, opts, err := readWith(ds.run, r, read[wire.InstanceAdopt])
	if err != nil {
		return err
	}
	req := nf.AdoptRequest{InstantiateRequest: nf.InstantiateRequest{
		Spec:   nf.Spec{Package: body.Package, Labels: body.Labels, Description: body.Description, Release: body.Release, Namespaces: body.Namespaces},
		Region: body.Region, Project: body.Project, Namespace: body.Namespace, Name: body.Name, Options: opts,
	}}
	if dryRun(r) {
		p, err := ds.engine.PreviewAdopt(r.Context(), req)
		return respond(w, p, err, wire.PreviewOf)
	}
	op, err := ds.engine.Adopt(r.Context(), req)
	if err != nil {
		return err
	}
	return ds.run.answerApplied(w, r, op, http.StatusCreated)
}
