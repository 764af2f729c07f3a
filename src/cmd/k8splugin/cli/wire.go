package cli

import (
	"encoding/json"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The types below are the server's answers, as far as they are shown.

type region struct {
	ID          string            `json:"cloud_region_id"`
	Owner       string            `json:"cloud_owner"`
	Description string            `json:"description"`
	Labels      map[string]string `json:"labels"`
	Tenants     map[string]tenant `json:"tenants"`
	Server      string            `json:"server"`
	Version     string            `json:"kubernetes_version"`
	APIs        []string          `json:"apis"`
	Users       []string          `json:"vnf_instances"` // of a single region
	MoreUsers   bool              `json:"more_vnf_instances"`
	State       regionState       `json:"state"`
	Credential  credential        `json:"credential"`
	Created     time.Time         `json:"created_at"`
	Updated     time.Time         `json:"updated_at"`
}

// tenant is what a project may use of a region.
type tenant struct {
	Namespaces     []string `json:"namespaces,omitempty"`
	ClusterKinds   []string `json:"cluster_kinds,omitempty"`
	ServiceAccount string   `json:"service_account,omitempty"`
}

type regionState struct {
	Condition nf.RegionCondition `json:"condition"`
	Reason    string             `json:"reason"`
	Message   string             `json:"message"`
	Since     time.Time          `json:"since"`
	Checked   time.Time          `json:"checked"`
	Breaker   nf.BreakerState    `json:"breaker"`
	Retry     time.Time          `json:"retry_at"`
}

type credential struct {
	Kind    string    `json:"kind"`
	Expires time.Time `json:"expires"`
}

type pkg struct {
	ID          string     `json:"csar_id"`
	Project     string     `json:"project"`
	Name        string     `json:"name"`
	Version     string     `json:"version"`
	Description string     `json:"description"`
	Kind        string     `json:"kind"`
	Source      string     `json:"source"`
	Digest      string     `json:"digest"`
	Size        int64      `json:"size"`
	Files       []string   `json:"files"`
	Variables   []variable `json:"variables"`
	Warnings    []string   `json:"warnings"`
	Users       []string   `json:"vnf_instances"` // of a single package
	MoreUsers   bool       `json:"more_vnf_instances"`
	Created     time.Time  `json:"created_at"`
	Updated     time.Time  `json:"updated_at"`
}

type variable struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Default     json.RawMessage `json:"default"`
	Required    bool            `json:"required"`
	Sensitive   bool            `json:"sensitive"`
	Description string          `json:"description"`
}

type instance struct {
	ID          string                     `json:"vnf_id"`
	Name        string                     `json:"vnf_instance_name"`
	Description string                     `json:"vnf_instance_description"`
	Region      string                     `json:"cloud_region_id"`
	Namespace   string                     `json:"namespace"`
	Namespaces  []string                   `json:"namespaces"`
	Project     string                     `json:"project"`
	Package     string                     `json:"csar_id"`
	State       string                     `json:"state"`
	Message     string                     `json:"message"`
	Healthy     *bool                      `json:"healthy"`
	Revision    int                        `json:"revision"`
	Parameters  map[string]json.RawMessage `json:"parameters"`
	OOF         []json.RawMessage          `json:"oof_parameters"`
	Network     map[string]json.RawMessage `json:"network_parameters"`
	Release     string                     `json:"release"`
	Set         map[string]string          `json:"set"`
	Amendments  []amendment                `json:"amendments"`
	Labels      map[string]string          `json:"labels"`
	Operation   string                     `json:"running_operation_id"`
	Warnings    []string                   `json:"warnings"`
	Objects     []object                   `json:"objects"`
	Created     time.Time                  `json:"created_at"`
	Updated     time.Time                  `json:"updated_at"`
}

// amendment is a package that is laid over that of an instance.
type amendment struct {
	Name       string                     `json:"name"`
	Package    string                     `json:"csar_id"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Set        map[string]string          `json:"set"`
}

// object is one object of the cluster: its health, or its change.
type object struct {
	APIVersion string      `json:"api_version"`
	Kind       string      `json:"kind"`
	Namespace  string      `json:"namespace"`
	Name       string      `json:"name"`
	Status     nf.Status   `json:"status"`
	Action     nf.Action   `json:"action"`
	Message    string      `json:"message"`
	Fields     []fieldDiff `json:"fields"`
}

// fieldDiff is one field of an object that differs; a side that is absent is nil.
type fieldDiff struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old"`
	New  json.RawMessage `json:"new"`
}

type preview struct {
	Changes  []object `json:"changes"`
	Warnings []string `json:"warnings"`
	Confirm  string   `json:"confirm"`
}

type operation struct {
	ID            string            `json:"operation_id"`
	Instance      string            `json:"vnf_id"`
	Region        string            `json:"cloud_region_id"`
	Namespace     string            `json:"namespace"`
	Project       string            `json:"project"`
	Verb          nf.Verb           `json:"verb"`
	State         nf.OperationState `json:"state"`
	Revision      int               `json:"revision"`
	OnFailure     nf.OnFailure      `json:"on_failure"`
	OnUnreachable string            `json:"on_unreachable"`
	Orphan        bool              `json:"orphan"`
	Claims        string            `json:"claims"`
	Repeats       string            `json:"repeats"`
	Undoing       bool              `json:"undoing"`
	UndoBy        time.Time         `json:"undo_by"`
	Attempts      int               `json:"attempts"`
	Waiting       *wait             `json:"waiting"`
	Steps         []step            `json:"steps"`
	Passed        *bool             `json:"passed"`
	Tests         []test            `json:"tests"`
	Changes       []object          `json:"changes"`
	Failure       *failure          `json:"failure"`
	Warnings      []string          `json:"warnings"`
	Accepted      time.Time         `json:"accepted_at"`
	Applied       time.Time         `json:"applied_at"`
	Finished      time.Time         `json:"finished_at"`
	Deadline      time.Time         `json:"deadline"`

	sent []byte // as the server said it, in an event
}

// wait is what an operation waits for.
type wait struct {
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
	For    string    `json:"for"`
	Next   time.Time `json:"next_attempt_at"`
}

type step struct {
	Name     string    `json:"name"`
	Started  time.Time `json:"started_at"`
	Finished time.Time `json:"finished_at"`
	Message  string    `json:"message"`
	Failed   bool      `json:"failed"`
	Objects  int       `json:"objects"`
	Current  int       `json:"current"`
}

// test is one test of an instance; whether it has passed is nil until it ends.
type test struct {
	Kind     string    `json:"kind"`
	Name     string    `json:"name"`
	Passed   *bool     `json:"passed"`
	Message  string    `json:"message"`
	Started  time.Time `json:"started_at"`
	Finished time.Time `json:"finished_at"`
}

type failure struct {
	Kind    nf.Kind       `json:"kind"`
	Step    string        `json:"step"`
	Message string        `json:"message"`
	Errors  nf.Violations `json:"errors"`
}
