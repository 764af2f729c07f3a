package tacker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Connections registers the VIMs that requests for VNFs describe (vimConnectionInfo).
type Connections struct{ regions Regions }

// NewConnections returns Connections that register regions.
func NewConnections(regions Regions) Connections { return Connections{regions} }

// Register returns the connections of a request for a VNF of a project. One that names no
// VIM, neither by its id nor by its address, and has an access, becomes a cloud region of
// the origin nf.OriginVNF, and the connection gets its id. Each address has one such region
// in each project, and that of an OpenStack cloud one for each project and region there:
// another access replaces its access, after a probe. An OpenStack cloud that names a VIM by
// its address and its project gets the id of that. Other connections stay
// as they are. Register returns nf.Invalid for an access that is incomplete, nf.Forbidden if
// the caller may not write the region, and otherwise what the registration of a region does.
// It is idempotent.
func (cs Connections) Register(ctx context.Context, project string, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.VIMConnectionRequest, error) {
	out := maps.Clone(wanted)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		c := wanted[key]
		if len(c.Access) == 0 || !strings.HasPrefix(c.Type, kubernetesType) && !strings.HasPrefix(c.Type, helmType) && c.Type != cloudType {
			continue
		}
		made, err := cs.region(ctx, project, c)
		if err != nil {
			return nil, located(err, key)
		}
		if made != "" {
			c.VIM = nf.Region{ID: made}.VIMID()
			out[key] = c
		}
	}
	return out, nil
}

// The beginnings of the types of VIMs that are Kubernetes clusters, and the type of OpenStack
// clouds.
const (
	kubernetesType = "ETSINFV.KUBERNETES"
	helmType       = "ETSINFV.HELM"
	cloudType      = "ETSINFV.OPENSTACK_KEYSTONE.V_3"
)

// region registers the region that a connection describes, and returns its id. It returns
// an empty one if the connection names another region.
func (cs Connections) region(ctx context.Context, project string, c nf.VIMConnectionRequest) (string, error) {
	if c.Type == cloudType { // its access was ignored if its VIM is registered, and may be one of another form
		if named, err := cs.names(ctx, c.VIM); err != nil || named {
			return "", err
		}
	}
	wanted, err := described(project, c)
	if err != nil {
		return "", err
	}
	found, err := cs.search(ctx, c, wanted)
	switch {
	case err != nil || found.named:
		return "", err
	case found.present:
	case found.same != "":
		return found.same, nil
	default:
		_, err = cs.regions.Register(ctx, wanted)
		if err == nil || nf.KindOf(err) != nf.Exists {
			return wanted.ID, err
		}
	}
	_, err = cs.regions.UpdateRegion(ctx, wanted.ID, func(r *nf.Region) error {
		if r.Origin != nf.OriginVNF {
			return nf.E(nf.Exists, "register", "cloud region "+wanted.ID, errors.New("another region has its id"))
		}
		r.Access = wanted.Access
		if wanted.VIM != nil {
			vim := vimOf(*r)
			vim.OpenStack = wanted.VIM.OpenStack
			r.VIM = &vim
		}
		return nil
	})
	return wanted.ID, err
}

// known is what is registered for a connection.
type known struct {
	present bool   // its own region
	named   bool   // a region that it names by its id, or by the address of a Kubernetes cluster
	same    string // id of a region with its project of an OpenStack cloud
}

func (cs Connections) search(ctx context.Context, c nf.VIMConnectionRequest, wanted nf.Region) (out known, err error) {
	for r, err := range cs.regions.RegionsFrom(ctx, nf.Cursor{}) {
		switch {
		case err != nil:
			return out, err
		case r.ID == wanted.ID:
			out.present = true
		case r.IsVIM(c.VIM), r.Origin != nf.OriginVNF && r.Serves(wanted.Access.Server):
			out.named = true
		case r.Origin != nf.OriginVNF && out.same == "" && sameProject(r, wanted):
			out.same = r.ID
		}
	}
	return out, nil
}

// names reports whether an id is that of a VIM that was not registered by a request for a VNF.
func (cs Connections) names(ctx context.Context, vim string) (bool, error) {
	for r, err := range cs.regions.RegionsFrom(ctx, nf.Cursor{}) {
		if err != nil {
			return false, err
		}
		if r.IsVIM(vim) && r.Origin != nf.OriginVNF {
			return true, nil
		}
	}
	return false, nil
}

// sameProject reports whether both are the same project in the same region of an OpenStack
// cloud.
func sameProject(a, b nf.Region) bool {
	return a.Type == nf.OpenStackRegion && b.Type == nf.OpenStackRegion && a.VIM.OpenStack.Scope() == b.VIM.OpenStack.Scope()
}

// described returns the region that a connection describes.
func described(project string, c nf.VIMConnectionRequest) (nf.Region, error) {
	server, _ := c.Interface["endpoint"].(string)
	server = strings.TrimRight(server, "/")
	if server == "" {
		return nf.Region{}, nf.E(nf.Invalid, "use", "the connection", nf.Violations{{Field: "auth_url", Message: "is missing"}})
	}
	if c.Type == cloudType {
		return describedCloud(project, server, c)
	}
	var auth credentials
	for _, part := range []map[string]any{c.Access, c.Interface} { // a certificate may be in either
		if err := decodeText(part, &auth); err != nil {
			return nf.Region{}, err
		}
	}
	wrong := auth.check(nf.KubernetesRegion)
	if !auth.any() {
		wrong = append(wrong, nf.Violation{
			Field: "auth_cred", Message: "has no credential; give bearer_token, username and password, oidc_token_url, client_certificate and client_key, or kubeconfig",
		})
	}
	access, faults := auth.access(server, nf.Access{})
	if wrong = append(wrong, faults...); wrong == nil && len(access.Kubeconfig) == 0 {
		wrong = access.Validate(fieldOf)
	}
	if len(wrong) > 0 {
		return nf.Region{}, nf.E(nf.Invalid, "use", "the connection", wrong)
	}
	return givenRegion(nf.Region{Type: nf.KubernetesRegion, Access: access}, project, server), nil
}

// givenRegion completes the region of a connection of a project. Its id is made of what it is
// one for.
func givenRegion(r nf.Region, project string, of ...string) nf.Region {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{nf.ProjectOf(project)}, of...), "\n")))
	r.ID, r.Origin = "vim-"+hex.EncodeToString(sum[:8]), nf.OriginVNF
	r.Description = "given in requests for VNFs of the project " + nf.ProjectOf(project)
	return r
}

// describedCloud returns the region of a connection that describes an OpenStack cloud.
func describedCloud(project, server string, c nf.VIMConnectionRequest) (nf.Region, error) {
	o := c.OpenStack(server)
	auth := credentials{CA: trusted(c.Interface), Username: o.Username, Password: string(o.Password)}
	wrong := append(auth.check(nf.OpenStackRegion), auth.cloudCA(&o)...)
	for _, f := range [...]struct{ name, value string }{{"username", o.Username}, {"password", string(o.Password)}, {"project", o.Project}} {
		if f.value == "" {
			wrong = append(wrong, nf.Violation{Field: "auth_cred." + f.name, Message: "is missing"})
		}
	}
	if len(wrong) > 0 {
		return nf.Region{}, nf.E(nf.Invalid, "use", "the connection", wrong)
	}
	r := nf.Region{Type: nf.OpenStackRegion, VIM: &nf.VIM{OpenStack: &o}}
	if o.Region != "" {
		r.VIM.Extra = map[string]any{regionKey: o.Region}
	}
	scope := o.Scope()
	return givenRegion(r, project, scope[:]...), nil
}

// trusted returns the certificates that an interfaceInfo has, as texts.
func trusted(info map[string]any) string {
	ca, _ := info["ssl_ca_cert"].(string)
	list, _ := info["trustedCertificates"].([]any)
	for _, one := range list {
		text, _ := one.(string)
		ca += "\n" + text
	}
	return ca
}

// decodeText sets the credentials that are texts. Clients send other attributes, too.
func decodeText(from map[string]any, into *credentials) error {
	texts := map[string]string{}
	for name, value := range from {
		if text, ok := value.(string); ok && name != "cert_verify" {
			texts[name] = text
		}
	}
	document, err := json.Marshal(texts)
	if err == nil {
		err = json.Unmarshal(document, into)
	}
	if err != nil {
		return fmt.Errorf("cannot read the access of a connection: %w", err)
	}
	return nil
}

// located names the fields in an error as they are in a request for a VNF.
func located(err error, key string) error {
	found := slices.Clone(nf.ViolationsOf(err))
	if len(found) == 0 {
		return err
	}
	at := "vimConnectionInfo." + key + "."
	for i := range found {
		name := fieldOf(found[i].Field)
		switch field, isCredential := strings.CutPrefix(name, "auth_cred"); {
		case name == "auth_url":
			name = "interfaceInfo.endpoint"
		case field == ".ssl_ca_cert":
			name = "interfaceInfo.ssl_ca_cert"
		case isCredential:
			name = "accessInfo" + field
		}
		found[i].Field = at + name
	}
	return nf.E(nf.KindOf(err), "use", "the connection "+key, found)
}
