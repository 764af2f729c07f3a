package native

import (
	"errors"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// instanceAdopt is the body of a request to adopt a running release as an
// instance.
type instanceAdopt struct {
	executionOptions

	Region      string            `json:"cloud_region_id"`
	Package     string            `json:"csar_id"`
	Project     string            `json:"project"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"vnf_instance_name"`
	Description string            `json:"vnf_instance_description"`
	Release     string            `json:"release"`
	Labels      map[string]string `json:"labels"`
	Namespaces  []string          `json:"namespaces"`
}

func (b instanceAdopt) request(opts nf.Options) nf.AdoptRequest {
	return nf.AdoptRequest{InstantiateRequest: nf.InstantiateRequest{
		Spec:   nf.Spec{Package: b.Package, Labels: b.Labels, Description: b.Description, Release: b.Release, Namespaces: b.Namespaces},
		Region: b.Region, Project: b.Project, Namespace: b.Namespace, Name: b.Name, Options: opts,
	}}
}

// adopt responds as instances.create does.
func (ds dayTwo) adopt(w http.ResponseWriter, r *http.Request) error {
	if ds.engine == nil {
		return nf.E(nf.Unsupported, "adopt", "the release", errors.New("adoption is not enabled"))
	}
	body, opts, err := readWith(ds.run, r, read[instanceAdopt])
	if err != nil {
		return err
	}
	op, err := ds.engine.Adopt(r.Context(), body.request(opts))
	if err != nil {
		return err
	}
	return ds.run.answerApplied(w, r, op, http.StatusCreated)
}
