package nf

import (
	"log/slog"
	"time"
)

// Site is hosts that are made a cloud region, and stay in our care. The record
// is what is wanted; how much of it is there, its hosts and its operations say.
type Site struct {
	ID          string            `json:"id"`
	UID         string            `json:"uid"` // no other site ever has it, also of the same id
	Project     string            `json:"project,omitempty"`
	Description string            `json:"description,omitempty"`
	Region      string            `json:"region"` // that it becomes
	Owner       string            `json:"owner,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"` // of the region
	Driver      SiteDriver        `json:"driver"`
	Hosts       []SiteHost        `json:"hosts"`
	FirstUse    bool              `json:"first_use,omitempty"` // a host key that is not known yet is pinned when it is first seen
	Roles       []string          `json:"roles,omitempty"`
	Parameters  map[string]any    `json:"parameters,omitempty"`
	Proxy       SiteProxy         `json:"proxy,omitzero"`
	State       SiteState         `json:"state"`
	Busy        string            `json:"busy,omitempty"`           // the operation that changes it: the record is the lock
	Last        string            `json:"last_operation,omitempty"` // the operation that was accepted last
	Registered  bool              `json:"registered,omitempty"`     // the region is there by our doing
	Untouched   bool              `json:"untouched,omitempty"`      // nothing was ever run on its hosts
	Material    string            `json:"material"`                 // where what is secret of it is kept
	Secrets     []string          `json:"secrets,omitempty"`        // names of the secret parameters, sorted
	Request     RequestKey        `json:"request,omitzero"`         // under which its client asked for it
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// LogValue logs the id alone.
func (s Site) LogValue() slog.Value { return slog.StringValue(s.ID) }

// SiteDriver says how hosts become a region.
type SiteDriver string

// The drivers.
const (
	SiteByAnsible SiteDriver = "ansible" // the playbooks of kud
	SiteByScript  SiteDriver = "script"  // a script of the user's, which runs on the first host
)

// SiteHost is one host of a site.
type SiteHost struct {
	Name    string        `json:"name"`
	Address string        `json:"address"` // a name or an IP address
	Port    int           `json:"port"`
	User    string        `json:"user"`
	Key     string        `json:"key,omitempty"` // the pinned host key, as in authorized_keys: "ssh-ed25519 AAAA…"
	Role    SiteRole      `json:"role"`
	State   SiteHostState `json:"state"`
}

// SiteRole is what a host is in its cluster.
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
	HostJoining SiteHostState = "joining" // it shall be, and may be in part
	HostPresent SiteHostState = "present"
	HostLeaving SiteHostState = "leaving" // it shall not be any more, and may be in part
)

// SiteProxy is how hosts reach what they download.
type SiteProxy struct {
	HTTP  string `json:"http,omitempty"` // URLs
	HTTPS string `json:"https,omitempty"`
	None  string `json:"none,omitempty"` // names and networks, with commas, that are reached without
}

// SiteState says whether a site can be worked with.
type SiteState string

// The states of a site.
const (
	SiteBuilding SiteState = "building" // for the first time
	SiteReady    SiteState = "ready"
	SiteChanging SiteState = "changing"
	SiteRemoving SiteState = "removing"
	SiteFailed   SiteState = "failed" // its last operation did not succeed
)

// SiteMaterial is what is secret of a site.
type SiteMaterial struct {
	PrivateKey     Secret            `json:"private_key,omitempty"` // PEM
	Passphrase     Secret            `json:"passphrase,omitempty"`  // of the private key
	Password       Secret            `json:"password,omitempty"`
	BecomePassword Secret            `json:"become_password,omitempty"` // that sudo asks for; empty: it asks for none
	Secrets        map[string]Secret `json:"secrets,omitempty"`         // further parameters
	Script         Secret            `json:"script,omitempty"`          // what people write into scripts is nobody's business
	Options        []string          `json:"options,omitempty"`         // the arguments of the script
	RemoveScript   Secret            `json:"remove_script,omitempty"`   // takes the site down again; empty: the hosts stay as they are
}

// SiteVerb is what an operation of a site does.
type SiteVerb string

// The verbs of sites.
const (
	SiteBuild  SiteVerb = "build"
	SiteChange SiteVerb = "change"
	SiteRemove SiteVerb = "remove"
)

// Qualified returns the verb as it is told beside those of instances, in metrics,
// traces and logs: "site_build".
func (v SiteVerb) Qualified() Verb { return Verb("site_" + v) }

// SiteOperation is one change of a site, from its acceptance to its end.
type SiteOperation struct {
	ID        string         `json:"id"`
	Site      string         `json:"site"`
	UID       string         `json:"uid"` // of the site
	Region    string         `json:"region"`
	Project   string         `json:"project,omitempty"`
	Verb      SiteVerb       `json:"verb"`
	State     OperationState `json:"state"`
	Instances []string       `json:"instances,omitempty"`  // of remove: what is terminated before
	KeepHosts bool           `json:"keep_hosts,omitempty"` // of remove: the hosts stay as they are
	Cancel    bool           `json:"cancel,omitempty"`     // somebody asked to stop
	Request   RequestKey     `json:"request,omitzero"`     // under which its client asked for it
	Trace     string         `json:"trace,omitempty"`      // W3C traceparent of the request that began it
	Claim     string         `json:"claim,omitempty"`      // the token of the replica that runs it: whoever has another one has lost it
	Attempts  int            `json:"attempts,omitempty"`   // how many replicas have begun it
	Steps     []Step         `json:"steps"`
	Outcome   OperationState `json:"outcome,omitempty"` // how it will end: only the site is not told yet
	Failure   *Failure       `json:"failure,omitempty"`
	Warnings  []string       `json:"warnings,omitempty"`
	Accepted  time.Time      `json:"accepted"`
	Started   time.Time      `json:"started,omitzero"`
	Finished  time.Time      `json:"finished,omitzero"`
	Deadline  time.Time      `json:"deadline"`
}

// SiteEvent is one thing that happened while an operation of a site ran. It
// holds no secret that the site knows of.
type SiteEvent struct {
	Number  int           `json:"number"` // from 1
	Time    time.Time     `json:"time"`
	Kind    SiteEventKind `json:"kind"`
	Step    string        `json:"step,omitempty"` // of the operation
	Play    string        `json:"play,omitempty"`
	Task    string        `json:"task,omitempty"`
	Host    string        `json:"host,omitempty"`
	Message string        `json:"message,omitempty"`
}

// SiteEventKind says what an event tells.
type SiteEventKind string

// The kinds of events.
const (
	EventPlay        SiteEventKind = "play"        // a play begins
	EventTask        SiteEventKind = "task"        // a task begins
	EventOK          SiteEventKind = "ok"          // a task is done on a host, and changed nothing
	EventChanged     SiteEventKind = "changed"     // it did change something
	EventSkipped     SiteEventKind = "skipped"     // it had nothing to do there
	EventRetry       SiteEventKind = "retry"       // it is tried again
	EventIgnored     SiteEventKind = "ignored"     // it failed, and that does not matter
	EventFailed      SiteEventKind = "failed"      // it failed
	EventUnreachable SiteEventKind = "unreachable" // the host could not be reached
	EventStats       SiteEventKind = "stats"       // what became of a host in all
	EventLine        SiteEventKind = "line"        // a line that a script has written
	EventNote        SiteEventKind = "note"        // what the service itself has to say
)

// SiteUpdate is what is new of an operation of a site: how it is, or one event.
type SiteUpdate struct {
	Operation *SiteOperation // nil: the update is an event
	Event     SiteEvent
}

// SiteRequest asks for a new site.
type SiteRequest struct {
	Site     Site // what the caller may decide of it
	Material SiteMaterial
	Timeout  time.Duration // of the whole operation; the service's default when 0
	Key      RequestKey
	Trace    string // W3C traceparent of the request; empty: none
}

// SiteChangeRequest asks for a change of a site. The edits see the site as it
// is, and may be called more than once.
type SiteChangeRequest struct {
	Edit     func(*Site) error         // of Description, Roles, Parameters and Proxy
	Material func(*SiteMaterial) error // nil: it stays as it is
	Add      []SiteHost                // workers
	Remove   []string                  // names of workers
	Timeout  time.Duration
	Key      RequestKey
	Trace    string
}

// SiteRemoveRequest asks for the end of a site.
type SiteRemoveRequest struct {
	Instances []string // that may be terminated before
	KeepHosts bool     // leave the hosts as they are
	Timeout   time.Duration
	Key       RequestKey
	Trace     string
}
