package tacker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

// region returns the region of a new VIM.
func (in given) region() (nf.Region, error) {
	name := *cmp.Or(in.Name, new(string)) // the contract requires it
	r := nf.Region{ID: regionID(name), Type: cmp.Or(in.Type, nf.OpenStackRegion), Origin: nf.OriginTacker, VIM: &nf.VIM{}}
	if r.ID == name {
		in.Name = nil // the id is the name
	}
	r.Access.Server = in.AuthURL
	if r.Type == nf.OpenStackRegion {
		r.Access, r.VIM.OpenStack = nf.Access{}, &nf.OpenStack{AuthURL: in.AuthURL}
	}
	return r, in.change(&r)
}

// change makes the changes that a request wants to a region.
func (in given) change(r *nf.Region) error {
	v, vim := in.fixed(*r), vimOf(*r)
	if in.Name != nil {
		vim.Name = *in.Name
	}
	if in.Description != nil {
		r.Description = *in.Description
	}
	if in.Default != nil {
		vim.Default = bool(*in.Default)
	}
	if in.Extra != nil {
		vim.Extra = in.Extra
		v = slices.Concat(v, northbound.CheckMasks("extra", in.Extra, masked), checkDictionaries(in.Extra))
	}
	r.VIM = &vim
	var c credentials
	if in.Credentials != nil {
		c = *in.Credentials
		v = append(v, c.check(r.Type)...)
	}
	if r.Type == nf.OpenStackRegion {
		v = append(v, in.cloud(&vim, c)...)
		v = append(v, in.cloudRegion(&vim, r.Created.IsZero())...)
	} else {
		v = append(v, in.cluster(r, c)...)
	}
	if v = append(v, checkExtra(*r)...); len(v) > 0 {
		return nf.E(nf.Invalid, "use", "VIM "+strconv.Quote(r.VIMName()), v)
	}
	return nil
}

// fixed returns a violation for each field that must not change. Clients send them
// again.
func (in given) fixed(r nf.Region) nf.Violations {
	var v nf.Violations
	if in.Type != "" && in.Type != r.Type {
		v = append(v, nf.Violation{Field: "type", Message: "cannot be changed; register another VIM"})
	}
	if now := answerOf(r).AuthURL; in.AuthURL != "" && now != "" && in.AuthURL != now {
		v = append(v, nf.Violation{Field: "auth_url", Message: "cannot be changed; register another VIM"})
	}
	return v
}

// cluster sets the namespace and the access of a Kubernetes VIM. An access that a
// request sets does not follow A&AI.
func (in given) cluster(r *nf.Region, c credentials) nf.Violations {
	var v nf.Violations
	if in.Project != nil {
		if r.DefaultNamespace = in.Project.Name; in.Project.Domain != "" {
			v = append(v, nf.Violation{Field: "vim_project.project_domain_name", Message: "is not possible for a VIM of the type kubernetes"})
		}
	}
	if in.Credentials == nil {
		return v
	}
	server := cmp.Or(r.Access.Server, in.AuthURL)
	if !c.any() && r.Access.Equal(nf.Access{Server: server}) {
		return append(v, nf.Violation{
			Field: "auth_cred", Message: "has no credential; give bearer_token, username and password, oidc_token_url, client_certificate and client_key, or kubeconfig",
		})
	}
	access, wrong := c.access(server, r.Access)
	if wrong == nil && len(access.Kubeconfig) == 0 {
		wrong = access.Validate(fieldOf)
	}
	r.Access, r.AAI = access, nil
	return append(v, wrong...)
}

// cloud sets how an OpenStack VIM is connected to.
func (in given) cloud(vim *nf.VIM, c credentials) nf.Violations {
	o := *vim.OpenStack
	if in.Project != nil {
		o.Project, o.ProjectDomain = in.Project.Name, in.Project.Domain
	}
	o.Username, o.UserDomain = cmp.Or(c.Username, o.Username), cmp.Or(c.UserDomain, o.UserDomain)
	if c.Password != "" {
		o.Password = nf.Secret(c.Password)
	}
	if c.Verify != nil {
		o.Insecure = !bool(*c.Verify)
	}
	v := c.cloudCA(&o)
	vim.OpenStack = &o
	for _, f := range [...]struct{ name, value string }{
		{"auth_cred.username", o.Username}, {"auth_cred.password", string(o.Password)}, {"vim_project.name", o.Project},
	} {
		if f.value == "" {
			v = append(v, nf.Violation{Field: f.name, Message: "is missing"})
		}
	}
	return v
}

// regionKey is the entry of the extra data of an OpenStack VIM that has the region of its
// catalog.
const regionKey = "region"

// cloudRegion sets the region of the catalog of a new OpenStack VIM. It cannot be changed: the
// servers in the former region would no longer be found.
func (in given) cloudRegion(vim *nf.VIM, created bool) nf.Violations {
	if in.Extra == nil {
		return nil
	}
	region, given := in.Extra[regionKey]
	text, ok := region.(string)
	switch {
	case given && !ok:
		return nf.Violations{{Field: "extra." + regionKey, Message: "is not a text"}}
	case created:
		vim.OpenStack.Region = text
	case text != vim.OpenStack.Region:
		return nf.Violations{{Field: "extra." + regionKey, Message: "cannot be changed; register another VIM"}}
	}
	return nil
}

// checkDictionaries returns a violation for each dictionary in extra data that is too large.
func checkDictionaries(extra map[string]any) nf.Violations {
	var v nf.Violations
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if inner, ok := extra[name].(map[string]any); ok {
			v = append(v, nf.CheckUserData("extra."+nf.Clip(name, maxParameter), inner)...)
		}
	}
	return v
}

// checkExtra returns a violation if a VIM is to be used with Helm and cannot be. Tacker
// requires a token and a CA for that.
func checkExtra(r nf.Region) nf.Violations {
	asked, given := r.VIM.Extra["use_helm"]
	helm, ok := asked.(bool)
	switch {
	case given && !ok:
		return nf.Violations{{Field: "extra.use_helm", Message: "is not true or false"}}
	case helm && (len(r.Access.Token) == 0 || len(r.Access.CA) == 0):
		return nf.Violations{{Field: "extra.use_helm", Message: "needs auth_cred.bearer_token, and auth_cred.ssl_ca_cert with a certificate"}}
	}
	return nil
}

var strange = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// regionID returns the id of the region of a new VIM: its name or, if that cannot be an
// id, a part of it and a hash.
func regionID(name string) string {
	if nf.CheckID("", name) == nil {
		return name
	}
	const most = 40 // bytes of the name
	plain := strange.ReplaceAllString(name, "-")
	sum := sha256.Sum256([]byte(name))
	return strings.TrimLeft(plain[:min(len(plain), most)]+"-"+hex.EncodeToString(sum[:4]), "._-")
}
