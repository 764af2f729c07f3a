package wire

import (
	"encoding/json"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Service is a network service.
type Service struct {
	ID          string            `json:"service_id"`
	Project     string            `json:"project"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Networks    []ServiceNetwork  `json:"networks"`
	Members     []ServiceMember   `json:"members"`
	State       nf.ServiceState   `json:"state"`
	Message     string            `json:"message,omitempty"`
	Operation   string            `json:"operation_id,omitempty"` // the last one
	Links       map[string]string `json:"links"`
	Created     time.Time         `json:"created_at"`
	Updated     time.Time         `json:"updated_at"`
}

// ServiceNetwork is a network that the members of a service share.
type ServiceNetwork struct {
	Name   string          `json:"name"`
	Driver string          `json:"driver"`
	Spec   json.RawMessage `json:"spec"`
	Keep   bool            `json:"keep,omitempty"`
}

// ServiceMember is a member of a service. Its instance has all else.
type ServiceMember struct {
	Name      string `json:"name"`
	Group     int    `json:"group"`
	Instance  string `json:"vnf_id"`
	Package   string `json:"csar_id"`
	Region    string `json:"cloud_region_id"`
	Namespace string `json:"namespace,omitempty"`
	Link      string `json:"link"`
}

// ServiceOf converts a network service. If a request has failed and was kept, the members
// are all that may exist.
func ServiceOf(s nf.NetworkService) Service {
	return Service{
		ID: s.ID, Project: nf.ProjectOf(s.Project), Description: s.Description, Labels: s.Labels, State: s.State, Message: s.Failure.String(), Operation: s.Last,
		Networks: List(s.Content.Networks, func(n nf.ServiceNetwork) ServiceNetwork {
			return ServiceNetwork{n.Name, n.Driver, n.Spec, n.Keep}
		}),
		Members: List(s.All(), func(m nf.ServiceMember) ServiceMember {
			id := nf.MemberID(s.ID, m.Name)
			return ServiceMember{m.Name, m.Group, id, m.Spec.Package, m.Region, m.Namespace, InstancePath(id)}
		}),
		Links:   map[string]string{"self": ServicePath(s.ID), "operations": "/v1/operations?subject=service/" + s.ID},
		Created: s.Created, Updated: s.Updated,
	}
}

// ServiceCreate is a request to create a network service.
type ServiceCreate struct {
	ServiceEdit
	ServiceExecution

	ID      string `json:"service_id"`
	Project string `json:"project,omitempty"` // default "default"
}

// ServiceEdit holds the fields of a network service that a merge patch may change. Lists
// are replaced as a whole.
type ServiceEdit struct {
	Description string             `json:"description,omitempty"`
	Labels      map[string]string  `json:"labels,omitempty"`
	Networks    []ServiceNetwork   `json:"networks,omitempty"`
	Members     []ServiceMemberAdd `json:"members,omitempty"`
	NSD         string             `json:"nsd,omitempty"` // text of a network service descriptor, whose VNFs the members complete
}

// ServiceMemberAdd is a member as a request describes it.
type ServiceMemberAdd struct {
	InstanceEdit

	Name      string          `json:"name"`
	Group     int             `json:"group,omitempty"`
	Region    string          `json:"cloud_region_id,omitempty"`
	Placement *PlacementNeeds `json:"placement,omitempty"` // in place of the region
	Namespace string          `json:"namespace,omitempty"`
	VNFName   string          `json:"vnf_instance_name,omitempty"`
	Release   string          `json:"release,omitempty"`
}

// ServiceExecution holds the options of an operation on a network service.
type ServiceExecution struct {
	OnFailure nf.OnFailure `json:"on_failure,omitempty"`
	Timeout   any          `json:"timeout,omitempty"` // a duration or a number of seconds
}

// ServiceUndo is a request to undo the failed operation of a network service.
type ServiceUndo struct {
	Timeout any `json:"timeout,omitempty"` // a duration or a number of seconds
}

// ServicePatch is a merge patch of a network service, as a client sends it.
type ServicePatch struct {
	ServiceEdit
	ServiceExecution
}

// ServiceOperation is an operation on a network service.
type ServiceOperation struct {
	SubjectOperation

	Service string `json:"service_id"`
}

// ServicePreview is what a request would do to the members of a network service.
type ServicePreview struct {
	Members []MemberPreview `json:"members"` // those that it changes
}

// MemberPreview is what a request would do to one member.
type MemberPreview struct {
	Name     string   `json:"name"`
	Verb     nf.Verb  `json:"verb"`
	Region   string   `json:"cloud_region_id"`
	Changes  []Change `json:"changes"`
	Warnings []string `json:"warnings"`
}

// ServicePreviewOf converts previews.
func ServicePreviewOf(previews []nf.MemberPreview) ServicePreview {
	return ServicePreview{List(previews, func(p nf.MemberPreview) MemberPreview {
		return MemberPreview{p.Member.Name, p.Verb, p.Member.Region, List(p.Changes, ChangeOf), notNil(p.Warnings)}
	})}
}
