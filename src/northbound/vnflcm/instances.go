package vnflcm

import (
	"iter"
	"net/http"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/sol013"
)

// instances serves VNFs.
type instances struct {
	e edition

	vnfs VNFs
}

// creation is a CreateVnfRequest.
type creation struct {
	VNFD        string         `json:"vnfdId"`
	Name        string         `json:"vnfInstanceName"`
	Description string         `json:"vnfInstanceDescription"`
	Metadata    map[string]any `json:"metadata"`
}

func (is instances) create(w http.ResponseWriter, r *http.Request) error {
	in, err := northbound.Decode[creation](r)
	if err != nil {
		return err
	}
	if err := invalid(checkStored("metadata", in.Metadata)); err != nil {
		return err
	}
	project := r.URL.Query().Get("project")
	key, err := northbound.RequestKey(r, []any{in, project})
	if err != nil {
		return err
	}
	made, err := is.vnfs.Create(r.Context(), nf.VNF{
		Request: key,
		VNFD:    nf.VNFD{ID: in.VNFD}, Name: in.Name, Description: in.Description, Metadata: in.Metadata, Project: project,
	})
	if err != nil {
		return err
	}
	base := is.e.base(r)
	w.Header().Set("Location", is.e.vnfAt(base, made.ID))
	return northbound.Answer(w, http.StatusCreated, is.e.instanceOf(made, base))
}

func (is instances) list(w http.ResponseWriter, r *http.Request) error {
	base := is.e.base(r)
	return sol013.Listing[nf.VNF]{
		Attributes: sol013.Attributes{
			Mandatory: []string{"id", "vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion", "instantiationState", "_links"},
			Excluded:  []string{"vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata", "extensions"},
		},
		ID: func(v nf.VNF) string { return v.ID },
		Indexed: map[string]func(string) nf.Attribute{
			"vnfInstanceName": of(nf.AttributeInstance), "vnfdId": of(nf.AttributeVNFD), "instantiationState": of(nf.AttributeState),
		},
		Show: func(_ *http.Request, v nf.VNF) (any, error) { return is.e.instanceOf(v, base), nil },
	}.Answer(w, r, func(from nf.Cursor) iter.Seq2[nf.VNF, error] { return is.vnfs.VNFsFrom(r.Context(), from) })
}

// of returns the function that makes an attribute of a value.
func of(name string) func(string) nf.Attribute {
	return func(value string) nf.Attribute { return nf.Attribute{Name: name, Value: value} }
}

func (is instances) get(w http.ResponseWriter, r *http.Request) error {
	v, err := is.vnfs.VNF(r.Context(), vnfOf(r))
	if err != nil {
		return err
	}
	return northbound.Answer(w, http.StatusOK, is.e.instanceOf(v, is.e.base(r)))
}

func (is instances) remove(w http.ResponseWriter, r *http.Request) error {
	if err := is.vnfs.Delete(r.Context(), vnfOf(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// vnfOf returns the id of the VNF in the path of a request.
func vnfOf(r *http.Request) string { return mux.Vars(r)["vnf_instance_id"] }
