package native

import (
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// nested serves VNF instances under the paths of the 2018 URL layout, which
// contain the cloud region and the namespace.
type nested struct{ instances instances }

func (ns nested) routes(on route) {
	const all = "/vnf_instances/{cloud_region_id}/{namespace}"
	on(http.MethodGet, all, ns.list)
	on(http.MethodGet, all+"/{vnf_id}", ns.get)
	on(http.MethodDelete, all+"/{vnf_id}", ns.terminate)
}

func (ns nested) list(w http.ResponseWriter, r *http.Request) error {
	vars, ids := mux.Vars(r), []string{}
	where := []nf.Attribute{{Name: nf.AttributeRegion, Value: vars["cloud_region_id"]}, {Name: nf.AttributeNamespace, Value: vars["namespace"]}}
	for in, err := range ns.instances.store.InstancesFrom(r.Context(), vars["cloud_region_id"], nf.Cursor{Where: where}) {
		if err != nil {
			return err
		}
		if in.Summary().Has(where) {
			ids = append(ids, in.ID)
		}
	}
	if len(ids) == 0 {
		return nf.E(nf.NotFound, "list", "VNF instances of namespace "+vars["namespace"]+" in cloud region "+vars["cloud_region_id"], nil)
	}
	return northbound.Answer(w, http.StatusOK, struct {
		IDs []string `json:"vnf_id_list"`
	}{ids})
}

func (ns nested) get(w http.ResponseWriter, r *http.Request) error {
	in, err := ns.of(r)
	if err != nil {
		return err
	}
	return ns.instances.answer(w, r, in)
}

// of returns the instance of a nested path, or nf.NotFound if it is in
// another region or namespace.
func (ns nested) of(r *http.Request) (nf.Instance, error) {
	vars := mux.Vars(r)
	in, err := ns.instances.store.Instance(r.Context(), vars["vnf_id"])
	if err == nil && (in.Region != vars["cloud_region_id"] || in.Namespace != vars["namespace"]) {
		err = nf.E(nf.NotFound, "get", "VNF instance "+in.ID, nil)
	}
	return in, err
}

func (ns nested) terminate(w http.ResponseWriter, r *http.Request) error {
	in, err := ns.of(r)
	if err != nil {
		return err
	}
	op, err := ns.instances.store.Terminate(r.Context(), in.ID, nf.TerminateRequest{Options: nf.Options{Trace: ns.instances.run.trace(r)}})
	if err != nil {
		return err
	}
	if op, _, err = ns.instances.run.await(w, r, op, northbound.Ended); err != nil {
		return instanceReference(op).refuse(w, r, err)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
