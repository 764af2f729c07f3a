package nf

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
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
	Region        string `json:"region_name,omitempty"` // of the cloud's catalog; empty: that of the first endpoint
	Insecure      bool   `json:"insecure,omitempty"`    // its certificate is not to be verified
	CA            []byte `json:"ca,omitempty"`          // PEM certificates; empty: the CAs that the system trusts
}

// DefaultDomain is the name of the domain of users and projects of OpenStack that name none.
const DefaultDomain = "Default"

// Scope returns what identifies a project in a region of a cloud, for comparisons: the URL
// without slashes at the end, the project, its domain, and the region.
func (o OpenStack) Scope() [4]string {
	return [4]string{strings.TrimRight(o.AuthURL, "/"), o.Project, cmp.Or(o.ProjectDomain, DefaultDomain), o.Region}
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

// IsVIM reports whether an id is that of the region as a VIM. Letters of a UUID have no case
// (RFC 9562).
func (r Region) IsVIM(id string) bool { return r.VIMID() == strings.ToLower(id) }

// Serves reports whether a URL is that of the region's API server, but for slashes at the end.
func (r Region) Serves(server string) bool {
	own := strings.TrimRight(r.Access.Server, "/")
	return own != "" && own == strings.TrimRight(server, "/")
}

// UUIDOf returns a UUID that is made of a name.
func UUIDOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return UUID([16]byte(sum[:16]), 8) // of this version, the bits are the issuer's
}

// UUID returns a UUID (RFC 9562) of a version from 1 to 8 with the other bits given.
func UUID(bits [16]byte, version byte) string {
	bits[6], bits[8] = bits[6]&0x0f|version<<4, bits[8]&0x3f|0x80
	text := hex.EncodeToString(bits[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
