package wire

import (
	"net/url"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Site is a site. It has no field for a credential.
type Site struct {
	ID          string            `json:"site_id"`
	Project     string            `json:"project"`
	Description string            `json:"description,omitempty"`
	Region      string            `json:"cloud_region_id"`
	Owner       string            `json:"cloud_owner,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Driver      nf.SiteDriver     `json:"driver"`
	Hosts       []SiteHost        `json:"hosts"`
	Machines    *SiteMachines     `json:"machines,omitempty"`
	FirstUse    bool              `json:"trust_on_first_use,omitempty"`
	Roles       []string          `json:"roles"`
	Parameters  map[string]any    `json:"parameters,omitempty"`
	Secrets     []string          `json:"secrets,omitempty"` // names only
	Proxy       *SiteProxy        `json:"proxy,omitempty"`
	State       nf.SiteState      `json:"state"`
	Registered  bool              `json:"registered"`
	Operation   string            `json:"operation_id,omitempty"` // the last operation
	Links       map[string]string `json:"links"`
	Created     time.Time         `json:"created_at"`
	Updated     time.Time         `json:"updated_at"`
}

// SiteHost is a host of a site, in responses and in requests.
type SiteHost struct {
	Name    string           `json:"name"`
	Address string           `json:"address"`
	Port    int              `json:"port,omitempty"`
	User    string           `json:"user,omitempty"`
	Key     string           `json:"host_key,omitempty"`
	Role    nf.SiteRole      `json:"role"`
	State   nf.SiteHostState `json:"state,omitempty"`
	Machine string           `json:"machine_id,omitempty"` // in responses only
}

// SiteMachines describes the virtual machines that a site's hosts are, in responses
// and in requests.
type SiteMachines struct {
	Cloud          string   `json:"cloud_region_id"`
	Image          string   `json:"image"`
	Flavor         string   `json:"flavor"`
	Networks       []string `json:"networks"`
	KeyPair        string   `json:"key_pair,omitempty"`
	SecurityGroups []string `json:"security_groups,omitempty"`
	ControlPlanes  int      `json:"control_planes"`
	Workers        int      `json:"workers"`
}

// SiteProxy is the proxy of a site's hosts, in responses and in requests.
type SiteProxy struct {
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
	None  string `json:"no_proxy,omitempty"`
}

// SiteOf converts a site, with the passwords of its proxy masked.
func SiteOf(s nf.Site) Site {
	out := Site{
		ID: s.ID, Project: nf.ProjectOf(s.Project), Description: s.Description, Region: s.Region, Owner: s.Owner, Labels: s.Labels,
		Driver: s.Driver, FirstUse: s.FirstUse, Roles: notNil(s.Roles), Parameters: s.Parameters, Secrets: s.Secrets, State: s.State,
		Registered: s.Registered, Operation: s.Last, Created: s.Created, Updated: s.Updated,
		Hosts: List(s.Hosts, func(h nf.SiteHost) SiteHost { return SiteHost(h) }),
		Links: map[string]string{"self": SitePath(s.ID), "operations": SitePath(s.ID) + "/operations"},
	}
	if s.Machines != nil {
		m := s.Machines
		out.Machines = &SiteMachines{Cloud: m.Cloud, Image: m.Image, Flavor: m.Flavor, Networks: m.Networks, KeyPair: m.KeyPair, SecurityGroups: m.SecurityGroups}
		for _, h := range s.Hosts {
			switch {
			case h.State == nf.HostLeaving:
			case h.Role == nf.ControlPlane:
				out.Machines.ControlPlanes++
			default:
				out.Machines.Workers++
			}
		}
	}
	if s.Registered {
		out.Links["cloud_region"] = RegionPath(s.Region)
	}
	if s.Proxy != (nf.SiteProxy{}) {
		out.Proxy = &SiteProxy{redacted(s.Proxy.HTTP), redacted(s.Proxy.HTTPS), s.Proxy.None}
	}
	return out
}

// redacted returns a URL with its password masked.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return nf.Masked // not reached: the URL was validated when the site was created
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), nf.Masked)
	}
	return u.String()
}
