package access

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// file is the parsed content of access.yaml.
type file struct {
	users        []userEntry
	passwords    string // name of the password file
	tokens       []tokenEntry
	oidc         *oidcEntry
	certificates []certificateEntry
	grants       []grantEntry
	roles        []roleEntry
	policies     []policyEntry
}

// Each entry keeps its node, for the line in violations.
type (
	userEntry struct {
		at         *yaml.Node
		name, hash string
		groups     []string
	}
	tokenEntry struct {
		at        *yaml.Node
		name, sum string
		groups    []string
		expires   time.Time
	}
	oidcEntry struct {
		at                            *yaml.Node
		issuer, audience, username    string
		groups, groupsPrefix, rootsCA string
	}
	certificateEntry struct {
		at                   *yaml.Node
		uri, commonName, dns string
		name                 string
		groups               []string
	}
	grantEntry struct {
		at                          *yaml.Node
		subjects, projects, regions []string
		role                        string
	}
	roleEntry struct {
		at          *yaml.Node
		name        string
		permissions []string
	}
	policyEntry struct {
		at   *yaml.Node
		name string
	}
)

// readFile reads access.yaml. Violations are recorded in the document.
func readFile(d *document, root *yaml.Node) file {
	var f file
	d.fields(root, "", map[string]reader{
		"users":         entries(d, &f.users, d.user),
		"password_file": d.text(&f.passwords),
		"tokens":        entries(d, &f.tokens, d.token),
		"oidc": func(n *yaml.Node, field string) {
			f.oidc = &oidcEntry{}
			d.oidc(f.oidc, n, field)
		},
		"certificates": entries(d, &f.certificates, d.certificate),
		"grants":       entries(d, &f.grants, d.grant),
		"roles":        entries(d, &f.roles, d.role),
		"policies":     entries(d, &f.policies, d.policy),
	})
	return f
}

// entries reads a list of entries.
func entries[T any](d *document, into *[]T, read func(*T, *yaml.Node, string)) reader {
	return func(n *yaml.Node, field string) {
		d.each(n, field, func(n *yaml.Node, field string) {
			var e T
			read(&e, n, field)
			*into = append(*into, e)
		})
	}
}

func (d *document) user(e *userEntry, n *yaml.Node, field string) {
	e.at = n
	d.fields(n, field, map[string]reader{"name": d.text(&e.name), "password_hash": d.text(&e.hash), "groups": d.texts(&e.groups)})
}

func (d *document) token(e *tokenEntry, n *yaml.Node, field string) {
	e.at = n
	d.fields(n, field, map[string]reader{
		"name": d.text(&e.name), "sha256": d.text(&e.sum), "groups": d.texts(&e.groups), "expires": d.moment(&e.expires),
	})
}

func (d *document) oidc(e *oidcEntry, n *yaml.Node, field string) {
	e.at = n
	d.fields(n, field, map[string]reader{
		"issuer": d.text(&e.issuer), "audience": d.text(&e.audience), "username_claim": d.text(&e.username),
		"groups_claim": d.text(&e.groups), "groups_prefix": d.text(&e.groupsPrefix), "ca_file": d.text(&e.rootsCA),
	})
}

func (d *document) certificate(e *certificateEntry, n *yaml.Node, field string) {
	e.at = n
	d.fields(n, field, map[string]reader{
		"uri": d.text(&e.uri), "common_name": d.text(&e.commonName), "dns": d.text(&e.dns),
		"name": d.text(&e.name), "groups": d.texts(&e.groups),
	})
}

func (d *document) grant(e *grantEntry, n *yaml.Node, field string) {
	e.at = n
	d.fields(n, field, map[string]reader{
		"subjects": d.texts(&e.subjects), "role": d.text(&e.role), "projects": d.texts(&e.projects), "regions": d.texts(&e.regions),
	})
}

func (d *document) role(e *roleEntry, n *yaml.Node, field string) {
	e.at = n
	d.fields(n, field, map[string]reader{"name": d.text(&e.name), "permissions": d.texts(&e.permissions)})
}

func (d *document) policy(e *policyEntry, n *yaml.Node, field string) {
	e.at = n
	d.text(&e.name)(n, field)
}
