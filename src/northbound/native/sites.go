package native

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// Sites is what the API asks of the sites. What changes one returns an operation
// that goes on without the caller; nf.Busy while another operation of it runs.
type Sites interface {
	// CreateSite accepts a new site; nf.Exists when its id or its region's is taken.
	CreateSite(ctx context.Context, req nf.SiteRequest) (nf.SiteOperation, error)
	// ChangeSite accepts a change of a site.
	ChangeSite(ctx context.Context, id string, req nf.SiteChangeRequest) (nf.SiteOperation, error)
	// RemoveSite accepts the end of a site, with the VNF instances that use its
	// region when cascade says so, and otherwise nf.Conflict while there are any.
	RemoveSite(ctx context.Context, id string, req nf.SiteRemoveRequest, cascade bool) (nf.SiteOperation, error)
	// Site returns a site, or nf.NotFound.
	Site(ctx context.Context, id string) (nf.Site, error)
	// Sites returns every site, ordered by id.
	Sites(ctx context.Context) ([]nf.Site, error)
}

// SiteOperations is what the API asks of the operations of sites, also of those
// that are gone.
type SiteOperations interface {
	// SiteOperation returns an operation, or nf.NotFound.
	SiteOperation(ctx context.Context, site, id string) (nf.SiteOperation, error)
	// SiteOperations returns those of a site, in the order they were accepted.
	SiteOperations(ctx context.Context, site string) ([]nf.SiteOperation, error)
	// FollowSite yields the events of an operation after the given number, and the
	// operation whenever it changes, until it is final or the context ends.
	FollowSite(ctx context.Context, site, id string, after int) iter.Seq2[nf.SiteUpdate, error]
	// CancelSite asks an operation to stop; nf.Conflict when it has ended.
	CancelSite(ctx context.Context, site, id string) (nf.SiteOperation, error)
}

// siteRoutes adds the paths of sites.
func (a *API) siteRoutes(on func(method, path string, h northbound.Handler)) {
	on(http.MethodPost, "/sites", a.createSite)
	on(http.MethodGet, "/sites", a.listSites)
	on(http.MethodGet, "/sites/{site_id}", a.getSite)
	on(http.MethodPatch, "/sites/{site_id}", a.updateSite)
	on(http.MethodDelete, "/sites/{site_id}", a.deleteSite)
	on(http.MethodGet, "/sites/{site_id}/operations", a.listSiteOperations)
	on(http.MethodGet, "/sites/{site_id}/operations/{operation_id}", a.getSiteOperation)
	on(http.MethodGet, "/sites/{site_id}/operations/{operation_id}/events", a.followSiteOperation)
	on(http.MethodPost, "/sites/{site_id}/operations/{operation_id}/cancel", a.cancelSiteOperation)
}

func sitePath(id string) string { return "/v1/sites/" + id }
func siteOperationPath(site, operation string) string {
	return sitePath(site) + "/operations/" + operation
}

// siteHost is a host as clients see it.
type siteHost struct {
	Name    string           `json:"name"`
	Address string           `json:"address"`
	Port    int              `json:"port,omitempty"`
	User    string           `json:"user,omitempty"`
	Key     string           `json:"host_key,omitempty"`
	Role    nf.SiteRole      `json:"role"`
	State   nf.SiteHostState `json:"state,omitempty"`
}

type siteProxy struct {
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
	None  string `json:"no_proxy,omitempty"`
}

// siteView is a site as clients see it. It has no place for a credential.
type siteView struct {
	ID          string            `json:"site_id"`
	Project     string            `json:"project"`
	Description string            `json:"description,omitempty"`
	Region      string            `json:"cloud_region_id"`
	Owner       string            `json:"cloud_owner,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Driver      nf.SiteDriver     `json:"driver"`
	Hosts       []siteHost        `json:"hosts"`
	FirstUse    bool              `json:"trust_on_first_use,omitempty"`
	Roles       []string          `json:"roles"`
	Parameters  map[string]any    `json:"parameters,omitempty"`
	Secrets     []string          `json:"secrets,omitempty"` // their names
	Proxy       *siteProxy        `json:"proxy,omitempty"`
	State       nf.SiteState      `json:"state"`
	Registered  bool              `json:"registered"`
	Operation   string            `json:"operation_id,omitempty"` // the last one
	Links       map[string]string `json:"links"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
}

func fromSite(s nf.Site) siteView {
	out := siteView{
		ID: s.ID, Project: nf.ProjectOf(s.Project), Description: s.Description, Region: s.Region, Owner: s.Owner, Labels: s.Labels,
		Driver: s.Driver, FirstUse: s.FirstUse, Roles: list(s.Roles), Parameters: s.Parameters, Secrets: s.Secrets, State: s.State,
		Registered: s.Registered, Operation: s.Last, CreatedAt: s.Created, UpdatedAt: s.Updated,
		Hosts: each(s.Hosts, func(h nf.SiteHost) siteHost { return siteHost(h) }),
		Links: map[string]string{"self": sitePath(s.ID), "operations": sitePath(s.ID) + "/operations"},
	}
	if s.Registered {
		out.Links["cloud_region"] = regionPath(s.Region)
	}
	if s.Proxy != (nf.SiteProxy{}) {
		out.Proxy = &siteProxy{redacted(s.Proxy.HTTP), redacted(s.Proxy.HTTPS), s.Proxy.None}
	}
	return out
}

// redacted returns a URL without its password.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return nf.Masked // it was one when it was asked for
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), nf.Masked)
	}
	return u.String()
}

// siteCredential is how hosts let the service in.
type siteCredential struct {
	PrivateKey     string `json:"private_key"`
	Passphrase     string `json:"passphrase"`
	Password       string `json:"password"`
	BecomePassword string `json:"become_password"`
}

// siteScript is what the script driver runs.
type siteScript struct {
	Content string   `json:"content"`
	Options []string `json:"options"`
	Remove  string   `json:"remove"`
}

// siteCreate is the body of a request for a site.
type siteCreate struct {
	ID          string            `json:"site_id"`
	Project     string            `json:"project"`
	Description string            `json:"description"`
	Region      string            `json:"cloud_region_id"`
	Owner       string            `json:"cloud_owner"`
	Labels      map[string]string `json:"labels"`
	Driver      nf.SiteDriver     `json:"driver"`
	User        string            `json:"user"` // of the hosts that name none
	Hosts       []siteHost        `json:"hosts"`
	FirstUse    bool              `json:"trust_on_first_use"`
	Credential  siteCredential    `json:"credential"`
	Roles       []string          `json:"roles"`
	Parameters  map[string]any    `json:"parameters"`
	Secrets     map[string]string `json:"secrets"`
	Proxy       siteProxy         `json:"proxy"`
	Script      siteScript        `json:"script"`
	Timeout     any               `json:"timeout"`
}

func (c siteCreate) request(key nf.RequestKey) (nf.SiteRequest, error) {
	timeout, err := duration(c.Timeout)
	if err != nil {
		return nf.SiteRequest{}, err
	}
	if err := refuseMask("parameters", c.Parameters); err != nil {
		return nf.SiteRequest{}, err
	}
	if c.Driver == "" {
		c.Driver = nf.SiteByAnsible
	}
	m := nf.SiteMaterial{
		PrivateKey: nf.Secret(c.Credential.PrivateKey), Passphrase: nf.Secret(c.Credential.Passphrase),
		Password: nf.Secret(c.Credential.Password), BecomePassword: nf.Secret(c.Credential.BecomePassword),
		Script: nf.Secret(c.Script.Content), Options: c.Script.Options, RemoveScript: nf.Secret(c.Script.Remove),
		Secrets: map[string]nf.Secret{},
	}
	for name, value := range c.Secrets {
		m.Secrets[name] = nf.Secret(value)
	}
	return nf.SiteRequest{
		Site: nf.Site{
			ID: c.ID, Project: c.Project, Description: c.Description, Region: orElse(c.Region, c.ID), Owner: c.Owner, Labels: c.Labels,
			Driver: c.Driver, Hosts: toHosts(c.Hosts, c.User), FirstUse: c.FirstUse, Roles: c.Roles, Parameters: c.Parameters,
			Proxy: nf.SiteProxy(c.Proxy),
		},
		Material: m, Timeout: timeout, Key: key,
	}, nil
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// toHosts returns hosts with what they have unless they say otherwise.
func toHosts(hosts []siteHost, user string) []nf.SiteHost {
	return each(hosts, func(h siteHost) nf.SiteHost {
		if h.Port == 0 {
			h.Port = 22
		}
		h.User, h.State = orElse(h.User, user), ""
		return nf.SiteHost(h)
	})
}

// siteEdit is what a merge patch of a site is applied to.
type siteEdit struct {
	Description string         `json:"description,omitempty"`
	Roles       []string       `json:"roles,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
	Proxy       siteProxy      `json:"proxy,omitzero"`
}

// materialEdit is what the rest of the patch is applied to. A credential is
// replaced as a whole, a secret by its name.
type materialEdit struct {
	Secrets map[string]string `json:"secrets,omitempty"`
}

// sitePatch is the part of a patch that is no merging.
type sitePatch struct {
	User       string          `json:"user"`
	Add        []siteHost      `json:"add_hosts"`
	Remove     []string        `json:"remove_hosts"`
	Credential *siteCredential `json:"credential"`
	Script     *siteScript     `json:"script"`
	Timeout    any             `json:"timeout"`
}

// change reads a patch.
func siteChange(p patch, key nf.RequestKey) (nf.SiteChangeRequest, error) {
	var direct sitePatch
	raw, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(raw, &direct)
	}
	if err != nil {
		return nf.SiteChangeRequest{}, invalid("", "cannot be read")
	}
	if err := refuseMask("", map[string]any(p)); err != nil {
		return nf.SiteChangeRequest{}, err
	}
	timeout, err := duration(direct.Timeout)
	if err != nil {
		return nf.SiteChangeRequest{}, err
	}
	merged := p.without("user", "add_hosts", "remove_hosts", "credential", "script", "secrets", "timeout")
	req := nf.SiteChangeRequest{
		Add: toHosts(direct.Add, direct.User), Remove: direct.Remove, Timeout: timeout, Key: key,
		Edit: func(s *nf.Site) error {
			edit, err := apply(merged, siteEdit{Description: s.Description, Roles: s.Roles, Parameters: s.Parameters, Proxy: siteProxy(s.Proxy)})
			if err != nil {
				return err
			}
			s.Description, s.Roles, s.Parameters, s.Proxy = edit.Description, edit.Roles, edit.Parameters, nf.SiteProxy(edit.Proxy)
			return nil
		},
	}
	if _, secrets := p["secrets"]; secrets || direct.Credential != nil || direct.Script != nil {
		req.Material = func(m *nf.SiteMaterial) error { return editMaterial(m, p, direct) }
	}
	return req, nil
}

func editMaterial(m *nf.SiteMaterial, p patch, direct sitePatch) error {
	if c := direct.Credential; c != nil {
		m.PrivateKey, m.Passphrase = nf.Secret(c.PrivateKey), nf.Secret(c.Passphrase)
		m.Password, m.BecomePassword = nf.Secret(c.Password), nf.Secret(c.BecomePassword)
	}
	if s := direct.Script; s != nil {
		m.Script, m.Options, m.RemoveScript = nf.Secret(s.Content), s.Options, nf.Secret(s.Remove)
	}
	present := materialEdit{Secrets: map[string]string{}}
	for name, value := range m.Secrets {
		present.Secrets[name] = string(value)
	}
	only := maps.Clone(p)
	maps.DeleteFunc(only, func(name string, _ any) bool { return name != "secrets" })
	wanted, err := apply(only, present)
	if err != nil {
		return err
	}
	m.Secrets = map[string]nf.Secret{}
	for _, name := range slices.Sorted(maps.Keys(wanted.Secrets)) {
		m.Secrets[name] = nf.Secret(wanted.Secrets[name])
	}
	return nil
}
