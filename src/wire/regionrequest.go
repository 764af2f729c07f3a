package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// RegionCreate is a request to register a cloud region. It has either an access
// or a kubeconfig.
type RegionCreate struct {
	ID   string        `json:"cloud_region_id"`
	Type nf.RegionType `json:"type,omitempty"`
	RegionEdit
}

// RegionEdit holds the fields of a region that a merge patch may change.
type RegionEdit struct {
	Owner       string               `json:"cloud_owner,omitempty"`
	Description string               `json:"description,omitempty"`
	Labels      map[string]string    `json:"labels,omitempty"`
	Namespace   string               `json:"default_namespace,omitempty"`
	AAITenant   string               `json:"aai_tenant,omitempty"`
	Plugins     map[string]bool      `json:"cni_plugins,omitempty"`
	Interfaces  map[string]string    `json:"interfaces,omitempty"`
	Tenants     map[string]nf.Tenant `json:"tenants,omitempty"`     // by project
	Access      *RegionAccess        `json:"access,omitempty"`      // replaces the access as a whole; nil: unchanged
	Kubeconfig  string               `json:"kubeconfig,omitempty"`  // base64; replaces the access; empty: unchanged
	Credentials *RegionCredentials   `json:"credentials,omitempty"` // of the access; nil: as the access says, or unchanged
}

// RegionCredentials says that the service renews the credential of an access.
type RegionCredentials struct {
	Rotate   nf.RotationKind `json:"rotate"`
	Lifetime int64           `json:"lifetime_seconds,omitempty"`
}

// RegionPatch is a merge patch of a region. A parent is changed alone.
type RegionPatch struct {
	RegionEdit

	Parent *ParentPatch `json:"parent,omitempty"`
}

// ParentPatch says which region has the Cluster of a region now.
type ParentPatch struct {
	Region string `json:"cloud_region_id"`
}

// RegionAccess says how to connect to a region, with one credential. It is never
// part of a response. Certificates and keys are PEM.
type RegionAccess struct {
	Server      string          `json:"server"`
	ServerName  string          `json:"tls_server_name,omitempty"` // default is the host of Server
	CA          string          `json:"ca,omitempty"`              // default is the CAs that the server's system trusts
	Insecure    bool            `json:"insecure_skip_tls_verify,omitempty"`
	Token       string          `json:"token,omitempty"`
	Username    string          `json:"username,omitempty"`
	Password    string          `json:"password,omitempty"`
	Certificate string          `json:"client_certificate,omitempty"`
	Key         string          `json:"client_key,omitempty"`
	OIDC        *OIDC           `json:"oidc,omitempty"`
	Account     *ServiceAccount `json:"service_account,omitempty"`
}

// OIDC is the password grant of an OpenID Connect provider.
type OIDC struct {
	TokenURL     string `json:"token_url"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	Username     string `json:"username"`
	Password     string `json:"password"`
	CA           string `json:"ca,omitempty"`
}

// ServiceAccount is the service account of a region whose token the service
// renews.
type ServiceAccount struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Audiences []string `json:"audiences,omitempty"`
	Lifetime  int64    `json:"lifetime_seconds,omitempty"`
}
