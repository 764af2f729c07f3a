package native

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// Sites manages sites. The methods that change a site return an operation that
// continues without the caller, or nf.Busy if another operation of the site is
// running.
type Sites interface {
	// CreateSite starts to build a site. It returns nf.Exists if its id or its
	// region's id is taken.
	CreateSite(ctx context.Context, req nf.SiteRequest) (nf.Operation, error)
	// ChangeSite starts to change a site.
	ChangeSite(ctx context.Context, id string, req nf.SiteChangeRequest) (nf.Operation, error)
	// RemoveSite starts to remove a site. If cascade is true, it terminates the
	// VNF instances that use the site's region; otherwise it returns
	// nf.Conflict if there are any.
	RemoveSite(ctx context.Context, id string, req nf.SiteRemoveRequest, cascade bool) (nf.Operation, error)
	// Site returns a site, or nf.NotFound.
	Site(ctx context.Context, id string) (nf.Site, error)
	// Sites returns all sites, sorted by id.
	Sites(ctx context.Context) ([]nf.Site, error)
}

// SiteOperations manages the operations of sites, including those of removed
// sites. An empty site stands for every site.
type SiteOperations interface {
	// SiteOperation returns an operation, or nf.NotFound.
	SiteOperation(ctx context.Context, site, id string) (nf.Operation, error)
	// SiteOperations returns the operations of a site in the order of their
	// acceptance.
	SiteOperations(ctx context.Context, site string) ([]nf.Operation, error)
	// FollowSite yields the events of an operation after the given number, and
	// the operation after each change, until it is final or the context ends.
	FollowSite(ctx context.Context, site, id string, after int) iter.Seq2[nf.OperationUpdate, error]
	// CancelSite cancels an operation. It returns nf.Conflict if the operation
	// has ended.
	CancelSite(ctx context.Context, site, id string) (nf.Operation, error)
}

// siteCredential holds the credentials for the hosts of a site.
type siteCredential struct {
	PrivateKey     string `json:"private_key"`
	Passphrase     string `json:"passphrase"`
	Password       string `json:"password"`
	BecomePassword string `json:"become_password"`
}

// siteScript holds the scripts of the script driver.
type siteScript struct {
	Content string   `json:"content"`
	Options []string `json:"options"`
	Remove  string   `json:"remove"`
}

// siteCreate is the body of a request to create a site.
type siteCreate struct {
	ID          string            `json:"site_id"`
	Project     string            `json:"project"`
	Description string            `json:"description"`
	Region      string            `json:"cloud_region_id"`
	Owner       string            `json:"cloud_owner"`
	Labels      map[string]string `json:"labels"`
	Driver      nf.SiteDriver     `json:"driver"`
	User        string            `json:"user"` // default user of the hosts
	Hosts       []wire.SiteHost   `json:"hosts"`
	FirstUse    bool              `json:"trust_on_first_use"`
	Credential  siteCredential    `json:"credential"`
	Roles       []string          `json:"roles"`
	Parameters  map[string]any    `json:"parameters"`
	Secrets     map[string]string `json:"secrets"`
	Proxy       wire.SiteProxy    `json:"proxy"`
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
	m := nf.SiteSecrets{
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
		Secrets: m, Timeout: timeout, Key: key,
	}, nil
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// toHosts converts hosts and sets the defaults of missing fields.
func toHosts(hosts []wire.SiteHost, user string) []nf.SiteHost {
	return wire.List(hosts, func(h wire.SiteHost) nf.SiteHost {
		if h.Port == 0 {
			h.Port = 22
		}
		h.User, h.State = orElse(h.User, user), ""
		return nf.SiteHost(h)
	})
}

// siteEdit is the document that a merge patch of a site applies to.
type siteEdit struct {
	Description string         `json:"description,omitempty"`
	Roles       []string       `json:"roles,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
	Proxy       wire.SiteProxy `json:"proxy,omitzero"`
}

// secretsEdit is the document that the rest of the patch applies to. Secrets
// are merged by name; a credential is replaced completely.
type secretsEdit struct {
	Secrets map[string]string `json:"secrets,omitempty"`
}

// sitePatch holds the fields of a patch that are not merged.
type sitePatch struct {
	User       string          `json:"user"`
	Add        []wire.SiteHost `json:"add_hosts"`
	Remove     []string        `json:"remove_hosts"`
	Credential *siteCredential `json:"credential"`
	Script     *siteScript     `json:"script"`
	Timeout    any             `json:"timeout"`
}

// siteChange converts a patch to a request.
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
			edit, err := apply(merged, siteEdit{Description: s.Description, Roles: s.Roles, Parameters: s.Parameters, Proxy: wire.SiteProxy(s.Proxy)})
			if err != nil {
				return err
			}
			s.Description, s.Roles, s.Parameters, s.Proxy = edit.Description, edit.Roles, edit.Parameters, nf.SiteProxy(edit.Proxy)
			return nil
		},
	}
	if _, secrets := p["secrets"]; secrets || direct.Credential != nil || direct.Script != nil {
		req.Secrets = func(m *nf.SiteSecrets) error { return editSecrets(m, p, direct) }
	}
	return req, nil
}

func editSecrets(m *nf.SiteSecrets, p patch, direct sitePatch) error {
	if c := direct.Credential; c != nil {
		m.PrivateKey, m.Passphrase = nf.Secret(c.PrivateKey), nf.Secret(c.Passphrase)
		m.Password, m.BecomePassword = nf.Secret(c.Password), nf.Secret(c.BecomePassword)
	}
	if s := direct.Script; s != nil {
		m.Script, m.Options, m.RemoveScript = nf.Secret(s.Content), s.Options, nf.Secret(s.Remove)
	}
	present := secretsEdit{Secrets: map[string]string{}}
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
