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

// enter applies the edit to a spec. Fields that the edit does not have stay.
func enter(s *nf.Spec, e wire.InstanceEdit) {
	s.Package, s.Labels, s.Description, s.Namespaces = e.Package, e.Labels, e.Description, e.Namespaces
	s.Inputs.Parameters, s.Inputs.OOF, s.Inputs.Network, s.Inputs.Overrides = e.Parameters, e.OOFParameters, e.NetworkParameters, e.Overrides
	s.Networks = nil
	if len(e.Networks) > 0 {
		s.Networks = wire.List(e.Networks, wire.Attachment.Domain)
	}
	s.Volumes = nil
	if len(e.Volumes) > 0 {
		s.Volumes = wire.List(e.Volumes, wire.VolumeUse.Domain)
	}
	s.Drift, s.Claims, s.AAI = e.Drift.Domain(), e.Claims, e.AAI.Domain()
	s.Workloads = nil
	if e.Workloads != nil { // an empty list deregisters those that the package declares
		s.Workloads = wire.List(e.Workloads, wire.WorkloadCluster.Domain)
	}
}

func editOf(s nf.Spec) wire.InstanceEdit {
	out := wire.InstanceEdit{
		Package: s.Package, Labels: s.Labels, Description: s.Description, Namespaces: s.Namespaces,
		Parameters: s.Inputs.Parameters, OOFParameters: s.Inputs.OOF, NetworkParameters: s.Inputs.Network, Overrides: s.Inputs.Overrides,
		Networks: wire.List(s.Networks, wire.AttachmentOf), Volumes: wire.List(s.Volumes, wire.VolumeUseOf), Drift: wire.DriftPolicyOf(s.Drift), Claims: s.Claims, AAI: wire.AAIOf(s.AAI),
	}
	if s.Workloads != nil {
		out.Workloads = wire.List(s.Workloads, wire.WorkloadClusterOf)
	}
	return out
}

func instantiateRequest(c wire.InstanceCreate, opts nf.Options) (nf.InstantiateRequest, error) {
	spec := nf.Spec{Release: c.Release}
	enter(&spec, c.InstanceEdit)
	for field, values := range map[string]any{
		"parameters": spec.Inputs.Parameters, "oof_parameters": spec.Inputs.OOF, "network_parameters": spec.Inputs.Network,
		"set": texts(spec.Inputs.Overrides),
	} {
		if err := refuseMask(field, values); err != nil {
			return nf.InstantiateRequest{}, err
		}
	}
	return nf.InstantiateRequest{
		Spec: spec, Region: c.Region, Placement: c.Placement.Domain(), Project: c.Project, Namespace: c.Namespace, Name: c.Name, Adopt: c.Adopt, Options: opts,
	}, nil
}

// upgradeRequest converts a merge patch of an instance to a request.
func upgradeRequest(change patch, opts nf.Options) (nf.UpgradeRequest, error) {
	if err := refuseMask("", map[string]any(change)); err != nil {
		return nf.UpgradeRequest{}, err
	}
	return nf.UpgradeRequest{Options: opts, Edit: func(s *nf.Spec) error {
		edit, err := apply(change, editOf(*s))
		if err != nil {
			return err
		}
		enter(s, edit)
		return nil
	}}, nil
}
