package render

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is one rendered Kubernetes object, and where it was written.
type Object struct {
	*unstructured.Unstructured

	File string // file in the package
	Line int    // line of the document's first key, from 1

	Shared bool // it is made where it is missing, and then nobody's: never changed, never deleted
	Keep   bool // it is never deleted, but left in place
}

// Group is what a package wants applied together: the objects of one entry of
// its ordered list.
type Group struct {
	Name    string        // unique in the package
	File    string        // in the package, where the entry is written; may be empty
	Line    int           // in the file, from 1
	After   []string      // names of the groups that must be settled first
	Objects []Object      // in the order they were written
	Wait    Wait          // when the group is settled
	Timeout time.Duration // 0: the operation's deadline alone

	Recreate Recreate // of objects without a RecreateAnnotation; empty: never
	Prelude  bool     // it is settled before the hooks that come first
}

// Hook is an object that is made at certain moments, for what it does.
type Hook struct {
	Object

	Events  []Event
	Weight  int           // hooks of one event run one after another: by weight, kind and name
	Discard []Discard     // when the object goes; empty: DiscardBefore
	Timeout time.Duration // 0: the operation's deadline alone
}

// Event is a moment at which hooks run.
type Event string

// The events: Helm's.
const (
	PreInstall   Event = "pre-install"
	PostInstall  Event = "post-install"
	PreUpgrade   Event = "pre-upgrade"
	PostUpgrade  Event = "post-upgrade"
	PreRollback  Event = "pre-rollback"
	PostRollback Event = "post-rollback"
	PreDelete    Event = "pre-delete"
	PostDelete   Event = "post-delete"
	TestRun      Event = "test"
)

// Discard says when a hook's object is deleted. Whatever it says, the object is
// deleted with the instance.
type Discard string

// The choices.
const (
	DiscardBefore  Discard = "before-hook-creation" // that of the last time goes before the next
	DiscardSuccess Discard = "hook-succeeded"
	DiscardFailure Discard = "hook-failed"
)

// Wait says when a group of objects counts as settled.
type Wait string

// The wait policies.
const (
	WaitReady   Wait = "ready"   // every object is Current
	WaitApplied Wait = "applied" // the API server has accepted every object
)

// Plan is what an operation does to a cluster, decided before it begins and
// kept: stages one after another, the objects of a stage side by side.
type Plan struct {
	Namespace string    `json:"namespace"`
	Stages    []Stage   `json:"stages"`
	Hooks     []Planned `json:"hooks,omitempty"` // by weight, kind and name
	Warnings  []string  `json:"warnings,omitempty"`
}

// Stage is a set of objects that are applied in parallel and then waited for.
type Stage struct {
	Name    string        `json:"name"`
	Timeout time.Duration `json:"timeout,omitempty"` // for the wait; 0: the operation's deadline alone
	Objects []Planned     `json:"objects"`
	Prelude bool          `json:"prelude,omitempty"` // it is settled before the hooks that come first
	Amended bool          `json:"amended,omitempty"` // amendments alone have brought it
}

// Planned is one object of a stage.
type Planned struct {
	Object *unstructured.Unstructured `json:"object"`
	Wait   Wait                       `json:"wait"`
	File   string                     `json:"file,omitempty"`
	Line   int                        `json:"line,omitempty"`

	Recreate bool `json:"recreate,omitempty"` // it may be deleted and made again where a change is otherwise refused
	Shared   bool `json:"shared,omitempty"`   // it is made where it is missing, and then nobody's
	Keep     bool `json:"keep,omitempty"`     // it is never deleted, but left in place

	Events  []Event       `json:"events,omitempty"` // of a hook
	Discard []Discard     `json:"discard,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`

	Amends bool     `json:"amends,omitempty"` // an amendment has brought it
	Base   *Planned `json:"base,omitempty"`   // what the package itself has in its place
}
