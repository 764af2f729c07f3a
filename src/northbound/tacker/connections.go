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
// in each project: another access replaces its access, after a probe. Other connections stay
// as they are. Register returns nf.Invalid for an access that is incomplete, nf.Forbidden if
// the caller may not write the region, and otherwise what the registration of a region does.
// It is idempotent.
func (cs Connections) Register(ctx context.Context, project string, wanted map[string]nf.VIMConnectionRequest) (map[string]nf.VIMConnectionRequest, error) {
	out := maps.Clone(wanted)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		c := wanted[key]
		if len(c.Access) == 0 || !strings.HasPrefix(c.Type, kubernetesType) && !strings.HasPrefix(c.Type, helmType) {
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

// The beginnings of the types of VIMs that are Kubernetes clusters.
const (
	kubernetesType = "ETSINFV.KUBERNETES"
	helmType       = "ETSINFV.HELM"
)

// region registers the region that a connection describes, and returns its id. It returns
// an empty one if the connection names another region.
func (cs Connections) region(ctx context.Context, project string, c nf.VIMConnectionRequest) (string, error) {
	wanted, err := described(project, c)
	if err != nil {
		return "", err
	}
	var present nf.Region
	for r, err := range cs.regions.RegionsFrom(ctx, nf.Cursor{}) {
		switch {
		case err != nil:
			return "", err
		case r.ID == wanted.ID:
			present = r
		case r.IsVIM(c.VIM), r.Origin != nf.OriginVNF && r.Serves(wanted.Access.Server):
			return "", nil
		}
	}
	if present.ID == "" {
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
		return nil
	})
	return wanted.ID, err
}

// described returns the region that a connection describes.
func described(project string, c nf.VIMConnectionRequest) (nf.Region, error) {
	server, _ := c.Interface["endpoint"].(string)
	server = strings.TrimRight(server, "/")
	if server == "" {
		return nf.Region{}, nf.E(nf.Invalid, "use", "the connection", nf.Violations{{Field: "auth_url", Message: "is missing"}})
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
	sum := sha256.Sum256([]byte(nf.ProjectOf(project) + "\n" + server))
	return nf.Region{
		ID: "vim-" + hex.EncodeToString(sum[:8]), Type: nf.KubernetesRegion, Origin: nf.OriginVNF, Access: access,
		Description: "given in requests for VNFs of the project " + nf.ProjectOf(project),
	}, nil
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
