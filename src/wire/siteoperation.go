package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// SiteOperation is an operation on a site.
type SiteOperation struct {
	ID              string            `json:"operation_id"`
	Subject         Subject           `json:"subject"`
	Site            string            `json:"site_id"`
	Region          string            `json:"cloud_region_id"`
	Project         string            `json:"project"`
	Verb            nf.Verb           `json:"verb"`
	State           nf.OperationState `json:"state"`
	Instances       []string          `json:"vnf_instances,omitempty"` // terminated with the site
	KeepHosts       bool              `json:"keep_hosts,omitempty"`
	CancelRequested bool              `json:"cancel_requested,omitempty"`
	Attempts        int               `json:"attempts,omitempty"`
	Steps           []Step            `json:"steps"`
	Failure         *Failure          `json:"failure,omitempty"`
	Warnings        []string          `json:"warnings,omitempty"`
	Accepted        time.Time         `json:"accepted_at"`
	Started         time.Time         `json:"started_at,omitzero"`
	Finished        time.Time         `json:"finished_at,omitzero"`
	Deadline        time.Time         `json:"deadline"`
}

// SiteOperationOf converts an operation. It shows the failure only after the
// operation has ended: before, the failure may not be final.
func SiteOperationOf(op nf.Operation) SiteOperation {
	out := SiteOperation{
		ID: op.ID, Subject: Subject(op.Subject), Site: op.Subject.ID, Region: op.Region, Project: nf.ProjectOf(op.Project), Verb: op.Verb, State: op.State,
		Instances: op.Site.Instances, KeepHosts: op.Site.KeepHosts, CancelRequested: op.Cancel, Attempts: op.Attempts,
		Steps: List(op.Steps, stepOf), Warnings: op.Warnings,
		Accepted: op.Accepted, Started: op.Started, Finished: op.Finished, Deadline: op.Deadline,
	}
	if op.State.Final() {
		out.Failure = failureOf(op.Failure)
	}
	return out
}

// SiteEvent is an event of an operation on a site.
type SiteEvent struct {
	Number  int          `json:"number"`
	Time    time.Time    `json:"time"`
	Kind    nf.EntryKind `json:"kind"`
	Step    string       `json:"step,omitempty"`
	Play    string       `json:"play,omitempty"`
	Task    string       `json:"task,omitempty"`
	Host    string       `json:"host,omitempty"`
	Message string       `json:"message,omitempty"`
}

// SiteEventOf converts an event.
func SiteEventOf(e nf.LogEntry) SiteEvent {
	return SiteEvent{
		Number: e.Number, Time: e.Time, Kind: e.Kind, Step: e.Step, Play: e.Play, Task: e.Task, Host: e.Host, Message: e.Said().String(),
	}
}
