package nf

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// NetworkService is an ordered group of VNF instances, its members, in one or several
// regions. One operation creates, changes or terminates all of them.
type NetworkService struct {
	ID          string            `json:"id"`
	Project     string            `json:"project,omitempty"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Content     ServiceContent    `json:"content"`           // that the last request asks for
	Former      ServiceContent    `json:"former,omitzero"`   // that was in force before; empty if Content is, or if none was
	Surplus     []ServiceMember   `json:"surplus,omitempty"` // members of failed requests that are in neither, and may exist
	State       ServiceState      `json:"state"`
	Failure     Text              `json:"failure,omitzero"`         // of the last operation
	Operation   string            `json:"operation,omitempty"`      // the operation that changes it: the lock
	Claim       string            `json:"claim,omitempty"`          // fencing token of that operation's claim
	Last        string            `json:"last_operation,omitempty"` // the operation that was accepted last
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// ServiceState says whether a network service is usable.
type ServiceState string

// The states of a network service.
const (
	ServiceCreating    ServiceState = "creating"
	ServiceReady       ServiceState = "ready" // all members are as its content describes them
	ServiceChanging    ServiceState = "changing"
	ServiceTerminating ServiceState = "terminating"
	ServiceFailed      ServiceState = "failed" // its last operation failed and was not undone
)

// ServiceContent is what a network service consists of.
type ServiceContent struct {
	Networks []ServiceNetwork `json:"networks,omitempty"`
	Members  []ServiceMember  `json:"members,omitempty"`
}

// ServiceNetwork is a network that members share. It is created in each region in which
// a member attaches to it, and deleted with its last user there.
type ServiceNetwork struct {
	Name string `json:"name"`
	Creation
}

// ServiceMember is a VNF instance of a network service.
type ServiceMember struct {
	Name      string     `json:"name"`            // unique in the service
	Group     int        `json:"group,omitempty"` // members of one group start together, and groups in ascending order
	Region    string     `json:"region"`
	Placement *Placement `json:"-"` // of a request: chooses the region; nil: none
	Namespace string     `json:"namespace,omitempty"`
	Instance  string     `json:"instance_name,omitempty"` // name of the instance
	Spec      Spec       `json:"spec"`                    // without what Content.SpecOf adds
}

// ServiceLabel is the label of VNF instances that names their network service.
const ServiceLabel = ReservedPrefix + "service"

// The limits of a network service.
const (
	MaxMembers         = 64
	MaxServiceNetworks = 32
	MaxGroup           = 1000
)

// MemberID returns the id of the VNF instance that is a member of a network service.
func MemberID(service, member string) string { return service + "." + member }

// All returns the members that may exist, each name once.
func (s NetworkService) All() []ServiceMember {
	return Besides(nil, s.Content.Members, s.Former.Members, s.Surplus)
}

// Besides returns the members in lists that are not among the given ones, each name once.
func Besides(given []ServiceMember, lists ...[]ServiceMember) []ServiceMember {
	names := map[string]bool{}
	for _, m := range given {
		names[m.Name] = true
	}
	var out []ServiceMember
	for _, m := range slices.Concat(lists...) {
		if !names[m.Name] {
			names[m.Name] = true
			out = append(out, m)
		}
	}
	return out
}

// Groups returns the members by their groups, in ascending order.
func Groups(members []ServiceMember) [][]ServiceMember {
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b ServiceMember) int { return a.Group - b.Group })
	var out [][]ServiceMember
	for i, m := range sorted {
		if i == 0 || m.Group != sorted[i-1].Group {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], m)
	}
	return out
}

// SpecOf returns the spec of a member's instance: the member's own, with the label of the
// service, and with the creation of the networks that the members share.
func (c ServiceContent) SpecOf(service string, m ServiceMember) Spec {
	out := m.Spec
	out.Labels = maps.Clone(out.Labels)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[ServiceLabel] = service
	out.Networks = slices.Clone(out.Networks)
	for _, n := range c.Networks {
		at := slices.IndexFunc(out.Networks, func(a Attachment) bool { return a.Network == n.Name })
		if at >= 0 {
			out.Networks[at].Create = &n.Creation
		}
	}
	return out
}

// Violations returns a violation for each field of the content that is wrong by itself.
// The specs of members are not checked.
func (c ServiceContent) Violations(service string) Violations {
	var v Violations
	if n := len(c.Members); n == 0 || n > MaxMembers {
		v = append(v, Violation{Field: "members", Message: fmt.Sprintf("are %d, and 1 to %d are allowed", n, MaxMembers)})
	}
	if n := len(c.Networks); n > MaxServiceNetworks {
		v = append(v, Violation{Field: "networks", Message: fmt.Sprintf("are %d, and at most %d are allowed", n, MaxServiceNetworks)})
	}
	names := map[string]bool{}
	for i, m := range c.Members {
		field := fmt.Sprintf("members[%d].", i)
		v = append(v, c.memberViolations(field, service, m)...)
		if names[m.Name] {
			v = append(v, Violation{Field: field + "name", Message: fmt.Sprintf("%q is also the name of another member", m.Name)})
		}
		names[m.Name] = true
	}
	names = map[string]bool{}
	for i, n := range c.Networks {
		field := fmt.Sprintf("networks[%d].", i)
		v = append(v, CheckSharedName(field+"name", n.Name, NetworkSubject)...)
		switch {
		case names[n.Name]:
			v = append(v, Violation{Field: field + "name", Message: fmt.Sprintf("%q is also the name of another network", n.Name)})
		case !slices.ContainsFunc(c.Members, func(m ServiceMember) bool { return m.attaches(n.Name) }):
			v = append(v, Violation{Field: field + "name", Message: fmt.Sprintf("no member attaches to %q", n.Name)})
		}
		if n.Driver == "" {
			v = append(v, Violation{Field: field + "driver", Message: "is missing"})
		}
		names[n.Name] = true
	}
	return v
}

func (c ServiceContent) memberViolations(field, service string, m ServiceMember) Violations {
	v := CheckSharedName(field+"name", m.Name, "member")
	if len(v) == 0 && service != "" {
		v = Subject{Kind: InstanceSubject, ID: MemberID(service, m.Name)}.CheckOwner(field + "name")
	}
	if m.Group < 0 || m.Group > MaxGroup {
		v = append(v, Violation{Field: field + "group", Message: fmt.Sprintf("must be between 0 and %d", MaxGroup)})
	}
	for i, a := range m.Spec.Networks {
		if a.Create != nil && slices.ContainsFunc(c.Networks, func(n ServiceNetwork) bool { return n.Name == a.Network }) {
			v = append(v, Violation{Field: fmt.Sprintf("%snetworks[%d].create", field, i), Message: "the service creates the network already"})
		}
	}
	return v
}

func (m ServiceMember) attaches(network string) bool {
	return slices.ContainsFunc(m.Spec.Networks, func(a Attachment) bool { return a.Network == network })
}

// ServiceRequest asks for a new network service.
type ServiceRequest struct {
	Service NetworkService // the fields that the caller may choose
	Options
}

// ServiceChangeRequest asks for a change of a network service. A change of a failed one
// without an edit is a retry.
type ServiceChangeRequest struct {
	Edit func(*NetworkService) error // of Description, Labels and Content; may be called more than once
	Options
}

// MemberPreview is the expected effect of a request on one member.
type MemberPreview struct {
	Member ServiceMember
	Verb   Verb // instantiate, upgrade or terminate
	Preview
}

// Validate returns nf.Invalid with a violation for every field that is wrong.
func (r ServiceRequest) Validate() error {
	v := CheckSharedName("service_id", r.Service.ID, ServiceSubject)
	if r.Service.Project != "" {
		v = append(v, CheckID("project", r.Service.Project)...)
	}
	v = append(v, r.Service.Violations()...)
	v = append(v, r.Options.violations()...)
	return invalid("create", Subject{Kind: ServiceSubject, ID: r.Service.ID}.Noun(), v)
}

// Violations returns a violation for each field that a change may set and that is wrong.
func (s NetworkService) Violations() Violations {
	v := CheckText("description", s.Description)
	v = append(v, CheckLabels("labels", s.Labels)...)
	return append(v, s.Content.Violations(s.ID)...)
}

// Regions returns the regions of the members that may exist, sorted.
func (s NetworkService) Regions() []string {
	var out []string
	for _, m := range s.All() {
		if m.Region != "" {
			out = append(out, m.Region)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Scope returns the project of the service, without a region.
func (s NetworkService) Scope() Scope { return Scope{Project: ProjectOf(s.Project)} }

// Scopes returns where permissions on the service are required: in its project, in the
// region of each member.
func (s NetworkService) Scopes() []Scope { return serviceScopes(s.Scope(), s.Regions()) }

// Scopes returns where permissions on the operation are required.
func (o Operation) Scopes() []Scope {
	return serviceScopes(Scope{Project: ProjectOf(o.Project), Region: o.Region}, o.Service.Regions)
}

func serviceScopes(of Scope, regions []string) []Scope {
	out := []Scope{of}
	for _, region := range regions {
		out = append(out, Scope{Project: of.Project, Region: region})
	}
	return out
}

// Summary returns the summary of the service.
func (s NetworkService) Summary() Summary {
	return Summary{Scope: s.Scope(), Attributes: append(labels(s.Labels),
		Attribute{AttributeState, string(s.State)}, Attribute{AttributeProject, ProjectOf(s.Project)})}
}

// MemberError returns an error that names the member of a request's service, and its
// field in violations. The field is that of the member in the request.
func (s NetworkService) MemberError(verb Verb, field string, m ServiceMember, err error) error {
	out := &Error{Kind: KindOf(err), Op: string(verb), Subject: Subject{Kind: ServiceSubject, ID: s.ID}.Noun(), Reason: ReasonOf(err), Operation: OperationOf(err), RetryAfter: RetryAfterOf(err)}
	violations := slices.Clone(ViolationsOf(err))
	for i, v := range violations {
		if v.Field != "" && v.File == "" && v.Object == (Ref{}) {
			violations[i].Field = field + "." + v.Field
		}
		violations[i] = violations[i].Saying(Textf("member %s: %s", m.Name, v.Said()))
	}
	out.Err = Errorf("member %s: %w", m.Name, err)
	if len(violations) > 0 {
		out.Err = violations
	}
	return out
}
