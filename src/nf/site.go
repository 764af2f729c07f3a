package nf

import (
	"log/slog"
	"time"
)

// Site is a set of hosts that the service turns into a cloud region and
// maintains. The record is the desired state; its hosts and its operations show
// the progress.
type Site struct {
	ID            string            `json:"id"`
	UID           string            `json:"uid"` // unique: a later site with the same id has a different one
	Project       string            `json:"project,omitempty"`
	Description   string            `json:"description,omitempty"`
	Region        string            `json:"region"` // the region that it becomes
	Owner         string            `json:"owner,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"` // of the region
	Driver        SiteDriver        `json:"driver"`
	EveryHost     bool              `json:"every_host,omitempty"` // the script runs on each host, not only on the first one
	Hosts         []SiteHost        `json:"hosts"`
	Machines      *Machines         `json:"machines,omitempty"`  // that the hosts are; nil: the hosts exist without the service
	FirstUse      bool              `json:"first_use,omitempty"` // pin an unknown host key at the first connection
	Roles         []string          `json:"roles,omitempty"`
	Parameters    map[string]any    `json:"parameters,omitempty"`
	Proxy         SiteProxy         `json:"proxy,omitzero"`
	State         SiteState         `json:"state"`
	Busy          string            `json:"operation,omitempty"`      // the operation that changes it: the lock
	Claim         string            `json:"claim,omitempty"`          // fencing token of that operation's claim
	Last          string            `json:"last_operation,omitempty"` // the operation that was accepted last
	Registered    bool              `json:"registered,omitempty"`     // the service registered the region
	Untouched     bool              `json:"never_run,omitempty"`      // no operation has run anything on its hosts
	SecretsRecord string            `json:"secrets_record"`           // key of the record with its secrets
	Secrets       []string          `json:"secrets,omitempty"`        // names of the secret parameters, sorted
	Request       RequestKey        `json:"request,omitzero"`         // the client's key for the request
	Created       time.Time         `json:"created"`
	Updated       time.Time         `json:"updated"`
}

// LogValue logs the id alone.
func (s Site) LogValue() slog.Value { return slog.StringValue(s.ID) }

// SiteDriver is the tool that turns hosts into a region.
type SiteDriver string

// The drivers of this project. The service builds sites with those that it is
// configured with.
const (
	SiteByAnsible SiteDriver = "ansible" // the playbooks of kud
	SiteByScript  SiteDriver = "script"  // a script of the user, which runs on the first host
)

// SiteHost is one host of a site.
type SiteHost struct {
	Name    string        `json:"name"`
	Address string        `json:"address"` // a name or an IP address; empty: of a machine that does not run yet
	Port    int           `json:"port"`
	User    string        `json:"user"`
	Key     string        `json:"key,omitempty"` // the pinned host key, as in authorized_keys: "ssh-ed25519 AAAA…"
	Role    SiteRole      `json:"role"`
	State   SiteHostState `json:"state"`
	Machine string        `json:"machine,omitempty"` // id of the virtual machine that it is
}

// SiteRole is the role of a host in its cluster.
type SiteRole string

// The roles of hosts.
const (
	ControlPlane SiteRole = "control_plane"
	Worker       SiteRole = "worker"
)

// SiteHostState says whether a host is part of the site.
type SiteHostState string

// The states of a host.
const (
	HostJoining SiteHostState = "joining" // being added, and possibly part of the cluster
	HostPresent SiteHostState = "present"
	HostLeaving SiteHostState = "leaving" // being removed, and possibly still part of the cluster
)

// SiteProxy configures the proxy through which hosts download.
type SiteProxy struct {
	HTTP  string `json:"http,omitempty"` // URLs
	HTTPS string `json:"https,omitempty"`
	None  string `json:"none,omitempty"` // comma-separated names and networks that are reached directly
}

// SiteState says whether a site is usable.
type SiteState string

// The states of a site.
const (
	SiteBuilding SiteState = "building" // for the first time
	SiteReady    SiteState = "ready"
	SiteChanging SiteState = "changing"
	SiteRemoving SiteState = "removing"
	SiteFailed   SiteState = "failed" // its last operation did not succeed
)

// SiteSecrets is the secret part of a site.
type SiteSecrets struct {
	PrivateKey     Secret                    `json:"private_key,omitempty"` // PEM
	Passphrase     Secret                    `json:"passphrase,omitempty"`  // of the private key
	Password       Secret                    `json:"password,omitempty"`
	BecomePassword Secret                    `json:"become_password,omitempty"` // for sudo; empty: sudo needs none
	Hosts          map[string]HostCredential `json:"hosts,omitempty"`           // of hosts with a credential of their own, by name
	Secrets        map[string]Secret         `json:"secrets,omitempty"`         // further secret parameters
	Script         Secret                    `json:"script,omitempty"`          // secret, because users write credentials into scripts
	Options        []string                  `json:"options,omitempty"`         // arguments of the script
	RemoveScript   Secret                    `json:"remove_script,omitempty"`   // removes the cluster from the hosts; empty: the hosts stay as they are
}

// HostCredential logs in to one host.
type HostCredential struct {
	PrivateKey Secret `json:"private_key,omitempty"` // PEM
	Passphrase Secret `json:"passphrase,omitempty"`
	Password   Secret `json:"password,omitempty"`
}

// Of returns the secrets with the credential of a host.
func (m SiteSecrets) Of(host string) SiteSecrets {
	if own, found := m.Hosts[host]; found {
		m.PrivateKey, m.Passphrase, m.Password = own.PrivateKey, own.Passphrase, own.Password
	}
	return m
}

// SiteRequest asks for a new site.
type SiteRequest struct {
	Site    Site // the fields that the caller may choose
	Secrets SiteSecrets
	Timeout time.Duration // of the whole operation; the service's default when 0
	Key     RequestKey
	Trace   string // W3C traceparent of the request; empty: none
}

// SiteChangeRequest asks for a change of a site. The edits receive the current
// site, and may be called more than once.
type SiteChangeRequest struct {
	Edit    func(*Site) error        // of Description, Roles, Parameters and Proxy
	Secrets func(*SiteSecrets) error // nil: no change
	Add     []SiteHost               // workers
	Workers *int                     // number of workers of a site with machines; nil: no change
	Remove  []string                 // names of workers
	Timeout time.Duration
	Key     RequestKey
	Trace   string
}

// SiteRemoveRequest asks for the removal of a site.
type SiteRemoveRequest struct {
	Instances []string // that may be terminated first
	KeepHosts bool     // leave the hosts as they are
	Timeout   time.Duration
	Key       RequestKey
	Trace     string
}
