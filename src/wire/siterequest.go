package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// SiteCreate is a request to build a site.
type SiteCreate struct {
	SiteEdit

	ID       string            `json:"site_id"`
	Project  string            `json:"project,omitempty"`         // default "default"
	Region   string            `json:"cloud_region_id,omitempty"` // default is the id of the site
	Owner    string            `json:"cloud_owner,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Driver   nf.SiteDriver     `json:"driver,omitempty"` // default ansible
	Hosts    []SiteHost        `json:"hosts,omitempty"`
	Machines *SiteMachines     `json:"machines,omitempty"` // instead of hosts
	FirstUse bool              `json:"trust_on_first_use,omitempty"`
}

// SitePatch is a change of a site.
type SitePatch struct {
	SiteEdit

	Add    []SiteHost `json:"add_hosts,omitempty"`
	Remove []string   `json:"remove_hosts,omitempty"` // names

	Machines *MachineCounts `json:"machines,omitempty"`
}

// MachineCounts is a change of the number of machines of a site.
type MachineCounts struct {
	Workers *int `json:"workers,omitempty"`
}

// SiteEdit holds the fields that the requests to build and to change a site have
// in common. A change merges the first five fields (RFC 7396) and replaces the
// credential and the script as a whole, unless they are nil. User and Timeout
// are those of the request.
type SiteEdit struct {
	Description string            `json:"description,omitempty"`
	Roles       []string          `json:"roles,omitempty"`
	Parameters  map[string]any    `json:"parameters,omitempty"`
	Proxy       SiteProxy         `json:"proxy,omitzero"`
	Secrets     map[string]string `json:"secrets,omitempty"`
	Credential  *SiteCredential   `json:"credential,omitempty"`
	Script      *SiteScript       `json:"script,omitempty"`
	User        string            `json:"user,omitempty"`    // of the hosts that name none
	Timeout     any               `json:"timeout,omitempty"` // of the operation: a string such as "2h", or a number of seconds
}

// SiteCredential holds the credentials for the hosts of a site.
type SiteCredential struct {
	PrivateKey     string `json:"private_key,omitempty"` // PEM
	Passphrase     string `json:"passphrase,omitempty"`  // of the private key
	Password       string `json:"password,omitempty"`
	BecomePassword string `json:"become_password,omitempty"` // for sudo
}

// SiteScript holds the scripts of the script driver.
type SiteScript struct {
	Content string   `json:"content"`
	Options []string `json:"options,omitempty"` // arguments
	Remove  string   `json:"remove,omitempty"`  // script that resets the hosts; empty: the hosts stay
}
