package nf

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
)

// VIM is what only Tacker's API knows of a cloud region, which it calls a VIM.
type VIM struct {
	Name      string         `json:"name,omitempty"`      // empty: the id of the region
	Default   bool           `json:"default,omitempty"`   // at most one VIM is it
	Extra     map[string]any `json:"extra,omitempty"`     // free-form
	OpenStack *OpenStack     `json:"openstack,omitempty"` // of an OpenStackRegion only
}

// OpenStack is how to connect to an OpenStack cloud.
type OpenStack struct {
	AuthURL       string `json:"auth_url"`
	Username      string `json:"username"`
	Password      Secret `json:"password"`
	UserDomain    string `json:"user_domain_name,omitempty"`
	Project       string `json:"project_name"`
	ProjectDomain string `json:"project_domain_name,omitempty"`
	Insecure      bool   `json:"insecure,omitempty"` // its certificate is not to be verified
	CA            []byte `json:"ca,omitempty"`       // PEM certificates; empty: the CAs that the system trusts
}

// LogValue logs only the URL: a JSON log would show the password.
func (o OpenStack) LogValue() slog.Value { return slog.StringValue(o.AuthURL) }

// VIMName returns the name of the region as a VIM.
func (r Region) VIMName() string {
	if r.VIM == nil {
		return r.ID
	}
	return cmp.Or(r.VIM.Name, r.ID)
}

// VIMID returns the id of the region as a VIM: a UUID that is made of the region's
// id, so that a region has the same one in every store.
func (r Region) VIMID() string { return UUIDOf("k8splugin.io/vim/" + r.ID) }

// UUIDOf returns a UUID that is made of a name.
func UUIDOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8 of RFC 9562: the bits are the issuer's
	text := hex.EncodeToString(sum[:16])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
