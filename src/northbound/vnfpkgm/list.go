package vnfpkgm

import (
	"iter"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

func (ps packages) list(w http.ResponseWriter, r *http.Request) error {
	return sol013.Listing[nf.Package]{
		Attributes: sol013.Attributes{
			Mandatory: []string{"id", "onboardingState", "operationalState", "usageState", "_links"},
			Excluded:  []string{"checksum", "softwareImages", "additionalArtifacts", "userDefinedData"},
		},
		ID: func(p nf.Package) string { return p.ID },
		Show: func(r *http.Request, p nf.Package) (any, error) {
			if !isVNF(p) {
				return nil, nil
			}
			return ps.info(r.Context(), p)
		},
	}.Answer(w, r, func(from nf.Cursor) iter.Seq2[nf.Package, error] { return ps.store.PackagesFrom(r.Context(), from) })
}
