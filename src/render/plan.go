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
}

// Group is what a package wants applied together: the objects of one entry of
// its ordered list.
type Group struct {
	Name    string        // unique in the package
	After   []string      // names of the groups that must be settled first
	Objects []Object      // in the order they were written
	Wait    Wait          // when the group is settled
	Timeout time.Duration // 0: the operation's deadline alone

	Recreate Recreate // of objects without a RecreateAnnotation; empty: never
}

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
	Namespace string   `json:"namespace"`
	Stages    []Stage  `json:"stages"`
	Warnings  []string `json:"warnings,omitempty"`
}

// Stage is a set of objects that are applied in parallel and then waited for.
type Stage struct {
	Name    string        `json:"name"`
	Timeout time.Duration `json:"timeout,omitempty"` // for the wait; 0: the operation's deadline alone
	Objects []Planned     `json:"objects"`
}

// Planned is one object of a stage.
type Planned struct {
	Object *unstructured.Unstructured `json:"object"`
	Wait   Wait                       `json:"wait"`
	File   string                     `json:"file,omitempty"`
	Line   int                        `json:"line,omitempty"`

	Recreate bool `json:"recreate,omitempty"` // it may be deleted and made again where a change is otherwise refused
}
