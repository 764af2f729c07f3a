package render

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Object is one rendered Kubernetes object and its place in the package.
type Object struct {
	*unstructured.Unstructured

	File  string // file in the package
	Line  int    // line of the document's first key, from 1
	Lines Lines  // nil: the lines of its fields are unknown

	Shared bool // it is created if missing, and has no owner: never changed, never deleted
	Keep   bool // it is never deleted, but left in place
}

// Lines returns the line of a field of an object in its file, or of the nearest
// enclosing field that the file has. A field is a path such as
// spec.containers[0].image or metadata.labels[app.kubernetes.io/name].
type Lines func(field string) int

// Group is the objects of one entry of a package's ordered list. They are
// applied together.
type Group struct {
	Name    string        // unique in the package
	File    string        // of the entry, in the package; may be empty
	Line    int           // in the file, from 1
	After   []string      // names of the groups that must be completed first
	Objects []Object      // in the order they were written
	Wait    Wait          // when the group is completed
	Timeout time.Duration // 0: only the operation's deadline

	Recreate Recreate // of objects without a RecreateAnnotation; empty: never
	Prelude  bool     // it is completed before the first hooks run
}

// Hook is an object that is created at certain events of an operation, such as
// a Job.
type Hook struct {
	Object

	Events  []nf.HookEvent
	Weight  int           // hooks of one event run sequentially: by weight, name and kind
	Discard []Discard     // when the object is deleted; empty: DiscardBefore
	Timeout time.Duration // 0: only the operation's deadline
}

// Discard says when a hook's object is deleted. In any case it is deleted with
// the instance.
type Discard string

// The discard policies.
const (
	DiscardBefore  Discard = "before-hook-creation" // the previous object is deleted before the next one is created
	DiscardSuccess Discard = "hook-succeeded"
	DiscardFailure Discard = "hook-failed"
)

// Wait says when a group of objects counts as completed.
type Wait string

// The wait policies.
const (
	WaitReady   Wait = "ready"   // every object is Current
	WaitApplied Wait = "applied" // the API server has accepted every object
)

// Plan is the sequence of changes that an operation makes to a cluster. It is
// computed and stored before the operation starts. Stages are applied one after
// another, the objects of a stage in parallel.
type Plan struct {
	Namespace string    `json:"namespace"`
	Stages    []Stage   `json:"stages"`
	Hooks     []Planned `json:"hooks,omitempty"` // by weight, name and kind
	Warnings  []string  `json:"warnings,omitempty"`
}

// Stage is a set of objects that are applied in parallel and then waited for.
type Stage struct {
	Name    string        `json:"name"`
	Timeout time.Duration `json:"timeout,omitempty"` // for the wait; 0: only the operation's deadline
	Objects []Planned     `json:"objects"`
	Prelude bool          `json:"prelude,omitempty"` // it is completed before the first hooks run
	Amended bool          `json:"amended,omitempty"` // it comes only from amendments
}

// Planned is one object of a stage.
type Planned struct {
	Object *unstructured.Unstructured `json:"object"`
	Wait   Wait                       `json:"wait"`
	File   string                     `json:"file,omitempty"`
	Line   int                        `json:"line,omitempty"`
	Lines  Lines                      `json:"-"` // nil: unknown, as in a stored plan

	Recreate bool `json:"recreate,omitempty"` // it may be deleted and created again if a change is otherwise rejected
	Shared   bool `json:"shared,omitempty"`   // it is created if missing, and has no owner
	Keep     bool `json:"keep,omitempty"`     // it is never deleted, but left in place

	Computed bool `json:"computed,omitempty"` // it has its compute profile already

	Former map[string]any `json:"former,omitempty"` // the object that existed before the instance, which adopts it; nil: none

	Events  []nf.HookEvent `json:"events,omitempty"` // of a hook
	Discard []Discard      `json:"discard,omitempty"`
	Timeout time.Duration  `json:"timeout,omitempty"`

	Amends bool     `json:"amends,omitempty"` // it comes from an amendment
	Base   *Planned `json:"base,omitempty"`   // the package's own object that it replaces
}

// LineOf returns the line of a field of the object, or the line of the object
// if the line of the field is unknown.
func (p Planned) LineOf(field string) int {
	if p.Lines == nil {
		return p.Line
	}
	return p.Lines(field)
}
