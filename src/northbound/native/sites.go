package native

import (
	"context"

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

func siteRequest(c wire.SiteCreate, key nf.RequestKey) (nf.SiteRequest, error) {
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
	var m nf.SiteSecrets
	setSecrets(&m, c.SiteEdit)
	hosts, machines, err := siteHosts(c)
	if err != nil {
		return nf.SiteRequest{}, err
	}
	return nf.SiteRequest{
		Site: nf.Site{
			ID: c.ID, Project: c.Project, Description: c.Description, Region: orElse(c.Region, c.ID), Owner: c.Owner, Labels: c.Labels,
			Driver: c.Driver, Hosts: hosts, Machines: machines, FirstUse: c.FirstUse, Roles: c.Roles, Parameters: c.Parameters,
			Proxy: nf.SiteProxy(c.Proxy),
		},
		Secrets: m, Timeout: timeout, Key: key,
	}, nil
}

// siteHosts returns the hosts of a new site, or those that its machines become.
func siteHosts(c wire.SiteCreate) ([]nf.SiteHost, *nf.Machines, error) {
	m := c.Machines
	switch {
	case m == nil:
		return toHosts(c.Hosts, c.User), nil, nil
	case len(c.Hosts) > 0:
		return nil, nil, nf.E(nf.Invalid, "build", "site "+c.ID, nf.Violations{{Field: "hosts", Message: "contradicts machines: the service creates the hosts"}})
	}
	spec := nf.Machines{Cloud: m.Cloud, Image: m.Image, Flavor: m.Flavor, Networks: m.Networks, KeyPair: m.KeyPair, SecurityGroups: m.SecurityGroups}
	return nf.MachineHosts(c.User, m.ControlPlanes, m.Workers), &spec, nil
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
		h.User, h.State, h.Machine = orElse(h.User, user), "", ""
		return nf.SiteHost(h)
	})
}

// siteChange converts a patch to a request.
func siteChange(p patch, key nf.RequestKey) (nf.SiteChangeRequest, error) {
	given, err := apply(p, wire.SitePatch{})
	if err != nil {
		return nf.SiteChangeRequest{}, err
	}
	if err := refuseMask("", map[string]any(p)); err != nil {
		return nf.SiteChangeRequest{}, err
	}
	timeout, err := duration(given.Timeout)
	if err != nil {
		return nf.SiteChangeRequest{}, err
	}
	req := nf.SiteChangeRequest{
		Add: toHosts(given.Add, given.User), Remove: given.Remove, Timeout: timeout, Key: key,
		Edit: func(s *nf.Site) error {
			edit, err := apply(p, wire.SiteEdit{Description: s.Description, Roles: s.Roles, Parameters: s.Parameters, Proxy: wire.SiteProxy(s.Proxy)})
			if err != nil {
				return err
			}
			s.Description, s.Roles, s.Parameters, s.Proxy = edit.Description, edit.Roles, edit.Parameters, nf.SiteProxy(edit.Proxy)
			return nil
		},
	}
	if given.Machines != nil {
		req.Workers = given.Machines.Workers
	}
	if _, secrets := p["secrets"]; secrets || given.Credential != nil || given.Script != nil {
		req.Secrets = func(m *nf.SiteSecrets) error { return editSecrets(m, p) }
	}
	return req, nil
}

// editSecrets applies a patch to the secrets of a site.
func editSecrets(m *nf.SiteSecrets, p patch) error {
	present := map[string]string{}
	for name, value := range m.Secrets {
		present[name] = string(value)
	}
	wanted, err := apply(p, wire.SiteEdit{Secrets: present})
	if err != nil {
		return err
	}
	setSecrets(m, wanted)
	return nil
}

// setSecrets replaces the secrets of a site, and the credential and the scripts
// if the request has them.
func setSecrets(m *nf.SiteSecrets, e wire.SiteEdit) {
	if c := e.Credential; c != nil {
		m.PrivateKey, m.Passphrase = nf.Secret(c.PrivateKey), nf.Secret(c.Passphrase)
		m.Password, m.BecomePassword = nf.Secret(c.Password), nf.Secret(c.BecomePassword)
	}
	if s := e.Script; s != nil {
		m.Script, m.Options, m.RemoveScript = nf.Secret(s.Content), s.Options, nf.Secret(s.Remove)
	}
	m.Secrets = map[string]nf.Secret{}
	for name, value := range e.Secrets {
		m.Secrets[name] = nf.Secret(value)
	}
}
