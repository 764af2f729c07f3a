package native

import (
	"errors"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// instanceAdopt is the body of a request to make an instance of a release that
// runs already.
type instanceAdopt struct {
	Region        string            `json:"cloud_region_id"`
	Package       string            `json:"csar_id"`
	Project       string            `json:"project"`
	Namespace     string            `json:"namespace"`
	Name          string            `json:"vnf_instance_name"`
	Description   string            `json:"vnf_instance_description"`
	Release       string            `json:"release"`
	Labels        map[string]string `json:"labels"`
	Namespaces    []string          `json:"namespaces"`
	OnUnreachable string            `json:"on_unreachable"`
	Timeout       any               `json:"timeout"`
}

func (b instanceAdopt) request(opts nf.Options) nf.AdoptRequest {
	return nf.AdoptRequest{InstantiateRequest: nf.InstantiateRequest{
		Spec:   nf.Spec{Package: b.Package, Labels: b.Labels, Description: b.Description, Release: b.Release, Namespaces: b.Namespaces},
		Region: b.Region, Project: b.Project, Namespace: b.Namespace, Name: b.Name, Options: opts,
	}}
}

// adoptInstance answers as createInstance does.
func (a *API) adoptInstance(w http.ResponseWriter, r *http.Request) error {
	if a.cfg.DayTwo == nil {
		return nf.E(nf.Unsupported, "adopt", "the release", errors.New("this service adopts nothing"))
	}
	body, key, err := read[instanceAdopt](a, r)
	if err != nil {
		return err
	}
	opts, err := a.options(r, manner{OnUnreachable: body.OnUnreachable, Timeout: body.Timeout}, key)
	if err != nil {
		return err
	}
	op, err := a.cfg.DayTwo.Adopt(r.Context(), body.request(opts))
	if err != nil {
		return err
	}
	return a.answerApplied(w, r, op, http.StatusCreated)
}
