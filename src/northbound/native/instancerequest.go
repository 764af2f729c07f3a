package native

import (
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// unknown returns the health of objects whose region cannot be queried.
func unknown(inventory []nf.Item, why string) []nf.Health {
	return wire.List(inventory, func(it nf.Item) nf.Health {
		return nf.Health{Ref: it.Ref, Status: nf.Unknown, Message: why}
	})
}

// instanceCreate is the body of a request to create an instance.
type instanceCreate struct {
	instanceEdit
	executionOptions

	Region    string `json:"cloud_region_id"`
	Project   string `json:"project"`
	Namespace string `json:"namespace"`
	Name      string `json:"vnf_instance_name"`
	Release   string `json:"release"`
}

// instanceEdit is the document that a merge patch of an instance applies to.
type instanceEdit struct {
	Package           string            `json:"csar_id,omitempty"`
	Parameters        map[string]any    `json:"parameters,omitempty"`
	OOFParameters     []map[string]any  `json:"oof_parameters,omitempty"`
	NetworkParameters map[string]any    `json:"network_parameters,omitempty"`
	Overrides         map[string]string `json:"set,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Description       string            `json:"vnf_instance_description,omitempty"`
	Namespaces        []string          `json:"namespaces,omitempty"` // additional namespaces that objects may be in
}

// into applies the edit to a spec. Fields that the edit does not have stay.
func (e instanceEdit) into(s *nf.Spec) {
	s.Package, s.Labels, s.Description, s.Namespaces = e.Package, e.Labels, e.Description, e.Namespaces
	s.Inputs.Parameters, s.Inputs.OOF, s.Inputs.Network, s.Inputs.Overrides = e.Parameters, e.OOFParameters, e.NetworkParameters, e.Overrides
}

func editOf(s nf.Spec) instanceEdit {
	return instanceEdit{
		Package: s.Package, Labels: s.Labels, Description: s.Description, Namespaces: s.Namespaces,
		Parameters: s.Inputs.Parameters, OOFParameters: s.Inputs.OOF, NetworkParameters: s.Inputs.Network, Overrides: s.Inputs.Overrides,
	}
}

func (c instanceCreate) request(opts nf.Options) (nf.InstantiateRequest, error) {
	spec := nf.Spec{Release: c.Release}
	c.into(&spec)
	for field, values := range map[string]any{
		"parameters": spec.Inputs.Parameters, "oof_parameters": spec.Inputs.OOF, "network_parameters": spec.Inputs.Network,
		"set": texts(spec.Inputs.Overrides),
	} {
		if err := refuseMask(field, values); err != nil {
			return nf.InstantiateRequest{}, err
		}
	}
	return nf.InstantiateRequest{
		Spec: spec, Region: c.Region, Project: c.Project, Namespace: c.Namespace, Name: c.Name, Options: opts,
	}, nil
}

// upgradeRequest converts a merge patch of an instance to a request.
func upgradeRequest(change patch, opts nf.Options) (nf.UpgradeRequest, error) {
	if err := refuseMask("", map[string]any(change)); err != nil {
		return nf.UpgradeRequest{}, err
	}
	change = change.without("on_failure", "on_unreachable", "timeout", "confirm", "wait", "validate")
	return nf.UpgradeRequest{Options: opts, Edit: func(s *nf.Spec) error {
		edit, err := apply(change, editOf(*s))
		if err != nil {
			return err
		}
		edit.into(s)
		return nil
	}}, nil
}
