package native

import (
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// summary is an instance as lists show it.
type summary struct {
	ID               string            `json:"vnf_id"`
	Region           string            `json:"cloud_region_id"`
	Namespace        string            `json:"namespace"`
	Project          string            `json:"project"`
	Package          string            `json:"csar_id"`
	Name             string            `json:"vnf_instance_name,omitempty"`
	Description      string            `json:"vnf_instance_description,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	State            nf.InstanceState  `json:"state"`
	Message          string            `json:"message,omitempty"`
	Revision         int               `json:"revision"`
	Operation        string            `json:"operation_id"`
	RunningOperation string            `json:"running_operation_id,omitempty"`
	Links            map[string]string `json:"links"`
	CreatedAt        time.Time         `json:"created_at"`
	UpdatedAt        time.Time         `json:"updated_at"`
}

func summarize(in nf.Instance) summary {
	return summary{
		ID: in.ID, Region: in.Region, Namespace: in.Namespace, Project: nf.ProjectOf(in.Project), Package: in.Package, Name: in.Name,
		Description: in.Description, Labels: in.Labels, State: in.State, Message: in.Message, Revision: in.Revision,
		Operation: in.LastOperation, RunningOperation: in.Operation,
		Links: map[string]string{
			"self": instancePath(in.ID), "cloud_region": regionPath(in.Region), "package": packagePath(in.Package),
			"operation": northbound.OperationPath(in.LastOperation),
		},
		CreatedAt: in.Created, UpdatedAt: in.Updated,
	}
}

// instance is an instance as clients see it.
type instance struct {
	summary

	Components        map[string][]string `json:"vnf_components"`
	Release           string              `json:"release,omitempty"`
	Namespaces        []string            `json:"namespaces,omitempty"` // further ones that its request opens
	Parameters        map[string]any      `json:"parameters,omitempty"`
	OOFParameters     []map[string]any    `json:"oof_parameters,omitempty"`
	NetworkParameters map[string]any      `json:"network_parameters,omitempty"`
	Overrides         map[string]string   `json:"set,omitempty"`
	Amendments        []amendment         `json:"amendments,omitempty"`
	Warnings          []string            `json:"warnings,omitempty"` // of the request that this answers
	Healthy           *bool               `json:"healthy,omitempty"`  // nil: not asked
	Objects           []object            `json:"objects,omitzero"`   // nil: not asked
}

// object is one object of an instance with its health.
type object struct {
	objectName

	Status  nf.Status `json:"status"`
	Message string    `json:"message,omitempty"`
}

// objectName names an object of a cluster.
type objectName struct {
	APIVersion string `json:"api_version"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func nameOf(r nf.Ref) objectName {
	return objectName{APIVersion: r.APIVersion(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

func fromInstance(in nf.Instance) instance {
	shown := in.Inputs.Mask(in.Sensitive)
	return instance{
		summary:    summarize(in),
		Components: nf.Components(in.Inventory),
		Release:    in.Release, Namespaces: in.Namespaces,
		Parameters: shown.Parameters, OOFParameters: shown.OOF, NetworkParameters: shown.Network, Overrides: shown.Overrides,
		Amendments: fromAmendments(in.Amendments, in.Sensitive),
	}
}

// with adds the health of the objects.
func (in instance) with(health []nf.Health) instance {
	ill := func(h nf.Health) bool { return h.Status != nf.Current }
	healthy := len(health) > 0 && !slices.ContainsFunc(health, ill)
	in.Healthy = &healthy
	in.Objects = each(health, func(h nf.Health) object { return object{nameOf(h.Ref), h.Status, h.Message} })
	return in
}

// unknown is the health of objects that cannot be asked for.
func unknown(inventory []nf.Item, why string) []nf.Health {
	return each(inventory, func(it nf.Item) nf.Health {
		return nf.Health{Ref: it.Ref, Status: nf.Unknown, Message: why}
	})
}

// instanceCreate is the body of a request for a new instance.
type instanceCreate struct {
	instanceEdit
	manner

	Region    string `json:"cloud_region_id"`
	Project   string `json:"project"`
	Namespace string `json:"namespace"`
	Name      string `json:"vnf_instance_name"`
	Release   string `json:"release"`
}

// instanceEdit is what a merge patch of an instance is applied to.
type instanceEdit struct {
	Package           string            `json:"csar_id,omitempty"`
	Parameters        map[string]any    `json:"parameters,omitempty"`
	OOFParameters     []map[string]any  `json:"oof_parameters,omitempty"`
	NetworkParameters map[string]any    `json:"network_parameters,omitempty"`
	Overrides         map[string]string `json:"set,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Description       string            `json:"vnf_instance_description,omitempty"`
	Namespaces        []string          `json:"namespaces,omitempty"` // further ones that objects may be in
}

// into changes a spec into what the edit says. What it does not speak of stays.
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

// upgradeRequest returns the request that a merge patch of an instance makes.
func upgradeRequest(change patch, opts nf.Options) (nf.UpgradeRequest, error) {
	if err := refuseMask("", map[string]any(change)); err != nil {
		return nf.UpgradeRequest{}, err
	}
	change = change.without("onFailure", "on_unreachable", "timeout", "confirm", "wait")
	return nf.UpgradeRequest{Options: opts, Edit: func(s *nf.Spec) error {
		edit, err := apply(change, editOf(*s))
		if err != nil {
			return err
		}
		edit.into(s)
		return nil
	}}, nil
}
