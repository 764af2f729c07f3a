package native

import (
	"errors"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// capabilities answers with what a region offers.
func (rs regions) capabilities(w http.ResponseWriter, r *http.Request) error {
	id := mux.Vars(r)["cloud_region_id"]
	region, err := rs.store.Region(r.Context(), id)
	if err != nil {
		return err
	}
	if rs.surveys == nil {
		return nf.E(nf.Unsupported, "read", "capabilities of cloud region "+id, errors.New("this service does not read them"))
	}
	read, err := rs.surveys.RegionCapabilities(r.Context(), id, r.URL.Query().Get("refresh") == "true")
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, wire.CapabilitiesOf(id, region.Plugins, read, time.Now()))
}
