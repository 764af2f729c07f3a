package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// SubjectOperation is the part that the operations on all subjects other than VNF
// instances have.
type SubjectOperation struct {
	ID              string            `json:"operation_id"`
	Subject         Subject           `json:"subject"`
	Region          string            `json:"cloud_region_id,omitempty"` // empty: of all regions
	Project         string            `json:"project"`
	Verb            nf.Verb           `json:"verb"`
	State           nf.OperationState `json:"state"`
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

// SiteOperation is an operation on a site.
type SiteOperation struct {
	SubjectOperation

	Site      string   `json:"site_id"`
	Instances []string `json:"vnf_instances,omitempty"` // terminated with the site
	KeepHosts bool     `json:"keep_hosts,omitempty"`
}

// NetworkOperation is an operation on a network.
type NetworkOperation struct {
	SubjectOperation

	Network string `json:"network_id"`
}

// VolumeOperation is an operation on a volume.
type VolumeOperation struct {
	SubjectOperation

	Volume string `json:"volume_id"`
}

// VNFOperation is an attempt at an occurrence of SOL003.
type VNFOperation struct {
	SubjectOperation

	VNF        string `json:"vnf_id"`
	Occurrence string `json:"occurrence_id"`
}

// SubjectOperationOf converts an operation to the document of its subject's kind. It
// shows the failure only after the operation has ended: before, the failure may not be
// final.
func SubjectOperationOf(op nf.Operation) any {
	out := SubjectOperation{
		ID: op.ID, Subject: Subject(op.Subject), Region: op.Region, Project: nf.ProjectOf(op.Project), Verb: op.Verb, State: op.State,
		CancelRequested: op.Cancel, Attempts: op.Attempts, Steps: List(op.Steps, stepOf), Warnings: op.Warnings,
		Accepted: op.Accepted, Started: op.Started, Finished: op.Finished, Deadline: op.Deadline,
	}
	if op.State.Final() {
		out.Failure = failureOf(op.Failure)
	}
	if op.Subject.Kind == nf.NetworkSubject {
		return NetworkOperation{SubjectOperation: out, Network: op.Subject.ID}
	}
	if op.Subject.Kind == nf.VolumeSubject {
		return VolumeOperation{SubjectOperation: out, Volume: op.Subject.ID}
	}
	if op.Subject.Kind == nf.ServiceSubject {
		return ServiceOperation{SubjectOperation: out, Service: op.Subject.ID}
	}
	if op.Subject.Kind == nf.VNFSubject {
		return VNFOperation{SubjectOperation: out, VNF: op.Subject.ID, Occurrence: op.VNF.Occurrence}
	}
	return SiteOperation{SubjectOperation: out, Site: op.Subject.ID, Instances: op.Site.Instances, KeepHosts: op.Site.KeepHosts}
}

// SubjectEvent is an event of an operation on such a subject.
type SubjectEvent struct {
	Number  int          `json:"number"`
	Time    time.Time    `json:"time"`
	Kind    nf.EntryKind `json:"kind"`
	Step    string       `json:"step,omitempty"`
	Play    string       `json:"play,omitempty"`
	Task    string       `json:"task,omitempty"`
	Host    string       `json:"host,omitempty"`
	Message string       `json:"message,omitempty"`
}

// SubjectEventOf converts an event.
func SubjectEventOf(e nf.LogEntry) SubjectEvent {
	return SubjectEvent{
		Number: e.Number, Time: e.Time, Kind: e.Kind, Step: e.Step, Play: e.Play, Task: e.Task, Host: e.Host, Message: e.Said().String(),
	}
}
