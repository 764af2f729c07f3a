package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// AAI is what ONAP's inventory A&AI is to have of an instance.
type AAI struct {
	Writer nf.AAIWriter `json:"writer,omitempty"`         // default service
	VNF    string       `json:"generic_vnf_id,omitempty"` // that the objects are related to
	Module string       `json:"vf_module_id,omitempty"`   // of this generic-vnf
	Tenant string       `json:"tenant_id,omitempty"`      // default is the cloud region's aai_tenant
}

// AAIOf returns the document; nil if nothing is set.
func AAIOf(a nf.AAI) *AAI {
	if a == (nf.AAI{}) {
		return nil
	}
	out := AAI(a)
	return &out
}

// Domain returns what the document says.
func (a *AAI) Domain() nf.AAI {
	if a == nil {
		return nf.AAI{}
	}
	return nf.AAI(*a)
}
