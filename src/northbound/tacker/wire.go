package tacker

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// flag is a boolean that may also be a text, as in "True".
type flag bool

// UnmarshalJSON reads a boolean or a text. The contract allows no other text.
func (f *flag) UnmarshalJSON(document []byte) error {
	*f = flag(strings.EqualFold(strings.Trim(string(document), `"`), "true"))
	return nil
}

// request is the body of POST and PUT. A field that is nil or empty is not given.
type request struct {
	VIM given `json:"vim"`
}

type given struct {
	Name        *string        `json:"name"`
	Description *string        `json:"description"`
	Type        nf.RegionType  `json:"type"`
	AuthURL     string         `json:"auth_url"`
	Credentials *credentials   `json:"auth_cred"`
	Project     *project       `json:"vim_project"`
	Default     *flag          `json:"is_default"`
	Extra       map[string]any `json:"extra"`
}

// project is the namespace of a Kubernetes VIM, or the project of an OpenStack VIM.
type project struct {
	Name   string `json:"name"`
	Domain string `json:"project_domain_name,omitempty"`
}

// answer is a VIM as clients see it.
type answer struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Type        nf.RegionType  `json:"type"`
	Tenant      string         `json:"tenant_id"`
	AuthURL     string         `json:"auth_url"`
	Credentials credentials    `json:"auth_cred"`
	Project     project        `json:"vim_project"`
	Placement   placement      `json:"placement_attr"`
	Default     bool           `json:"is_default"`
	Status      string         `json:"status"`
	Verified    bool           `json:"tls_verified"` // an extension of Tacker's API
	Region      string         `json:"cloud_region_id"`
	Extra       map[string]any `json:"extra"`
	Created     time.Time      `json:"created_at"`
	Updated     time.Time      `json:"updated_at"`
}

// placement are the namespaces of new VNF instances.
type placement struct {
	Regions []string `json:"regions"`
}

// The statuses of a VIM.
const (
	statusActive      = "ACTIVE"
	statusUnreachable = "UNREACHABLE"
	statusUnknown     = "UNKNOWN" // of OpenStack VIMs, which are not connected to
)

// defaultNamespace is the namespace of a region that names none.
const defaultNamespace = "default"

// answerOf returns a VIM without its status.
func answerOf(r nf.Region) answer {
	out := answer{
		ID: r.VIMID(), Name: r.VIMName(), Description: r.Description, Type: r.Type, Tenant: nf.DefaultProject,
		AuthURL: r.Access.Server, Credentials: shown(r), Project: project{Name: defaultNamespace}, Placement: placement{Regions: []string{}},
		Verified: !r.Access.Insecure, Region: r.ID, Extra: map[string]any{}, Created: r.Created, Updated: r.Updated,
	}
	if r.DefaultNamespace != "" {
		out.Project.Name = r.DefaultNamespace
	}
	if v := r.VIM; v != nil {
		out.Default = v.Default
		if v.Extra != nil {
			out.Extra = northbound.MaskFields(v.Extra, masked)
		}
		if o := v.OpenStack; o != nil {
			out.AuthURL, out.Project, out.Verified = o.AuthURL, project{o.Project, o.ProjectDomain}, !o.Insecure
			return out
		}
	}
	out.Placement.Regions = []string{out.Project.Name}
	return out
}

// only returns the VIM with the given fields; all, if none is given.
func (a answer) only(fields []string) any {
	if len(fields) == 0 {
		return a
	}
	document, _ := json.Marshal(a) // it has only texts and values of JSON
	all, out := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	_ = json.Unmarshal(document, &all)
	for _, name := range fields {
		if value, found := all[name]; found {
			out[name] = value
		}
	}
	return out
}
