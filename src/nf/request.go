package nf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Spec is the part of an instance that a caller chooses, and can change later.
type Spec struct {
	Package     string            `json:"package"`
	Inputs      Inputs            `json:"inputs"`
	Labels      map[string]string `json:"labels,omitempty"`
	Description string            `json:"description,omitempty"`
	Release     string            `json:"release,omitempty"`     // release name of a chart; empty: the instance's name, or else its id
	Namespaces  []string          `json:"namespaces,omitempty"`  // further ones that may contain objects, in addition to those that the package opens
	Amendments  []Amendment       `json:"amendments,omitempty"`  // names are distinct
	Annotations map[string]string `json:"annotations,omitempty"` // data that an API stores with the revision
	Networks    []Attachment      `json:"networks,omitempty"`    // of its workloads
	Volumes     []VolumeUse       `json:"volumes,omitempty"`     // that its claims bind
	Drift       DriftPolicy       `json:"drift,omitzero"`        // what is done about changes by other clients
	Claims      ClaimPolicy       `json:"claims,omitempty"`      // what happens at termination to the volume claims of StatefulSets
	Workloads   []WorkloadCluster `json:"workloads,omitzero"`    // clusters of its package that become regions; nil: those that the package declares
	AAI         AAI               `json:"aai,omitzero"`
}

// ClaimPolicy says what happens to the volume claims that StatefulSets have created when
// their instance is terminated.
type ClaimPolicy string

// The policies.
const (
	ClaimsKeep   ClaimPolicy = "keep" // they stay, with their data; also ""
	ClaimsDelete ClaimPolicy = "delete"
)

// InstantiateRequest asks for a new instance.
type InstantiateRequest struct {
	Spec

	ID        string // chosen by the caller; empty: the engine generates one
	Region    string
	Placement *Placement // chooses the region, which is then empty; nil: none
	Project   string     // DefaultProject when empty
	Namespace string     // the region's DefaultNamespace when empty
	Name      string     // unique in its region and namespace when given
	Adopt     bool       // objects of the package that exist without an owner become the instance's
	Options
}

// UpgradeRequest asks for a new revision of an instance.
type UpgradeRequest struct {
	// Edit changes the current spec into the desired one. It may be called more
	// than once.
	Edit func(*Spec) error
	Options
}

// ConfigureRequest asks for a change of an instance's amendments. The
// instance's own package is not rendered again, and its objects stay as they
// are.
type ConfigureRequest struct {
	// Edit changes the current amendments and annotations into the desired ones.
	// It may be called more than once; any other change is rejected.
	Edit func(*Spec) error
	Options
}

// AdoptRequest asks to make objects that run in a region already an instance,
// without changing them.
type AdoptRequest struct {
	InstantiateRequest

	// Selector selects the objects. If it is empty, they are those of the chart release named by the instance's Release, whose chart is
	// the instance's package. The instance then consists of the released objects,
	// and not of those that the package renders to.
	Selector AdoptionSelector
}

// AdoptionSelector selects the objects to adopt by their annotations and labels.
// An object matches if it has all of them, or if Unowned says so.
type AdoptionSelector struct {
	Unowned     bool              `json:"unowned,omitempty"` // every object matches that has no owner and no controller
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// TestRequest asks to run the test hooks of an instance's package.
type TestRequest struct {
	Empty bool // a package without tests is not an error: all of them succeed
	Options
}

// RollbackRequest asks to return an instance to a stored revision.
type RollbackRequest struct {
	Revision int // 0: the one before the active revision
	Options
}

// TerminateRequest asks to terminate an instance.
type TerminateRequest struct {
	Orphan  bool           // leave the objects in place, unowned
	Claims  ClaimPolicy    // empty: as the instance says; ClaimsDelete not with Orphan
	Cascade bool           // first terminate the instances in the regions that its clusters became; not with Orphan
	Grace   *time.Duration // pods that are still there are killed after this time, in whole seconds; nil: they have their own grace periods
	By      Subject        // whose operation asks for it: the owner of the instance; zero: a client
	Options
}

// DeletesClaims reports whether the volume claims of an instance's StatefulSets are
// deleted, too.
func (r TerminateRequest) DeletesClaims(in Instance) bool {
	return !r.Orphan && cmp.Or(r.Claims, in.Claims) == ClaimsDelete
}

// Options control how an operation is carried out.
type Options struct {
	OnFailure     OnFailure     // Undo when empty
	Timeout       time.Duration // of the whole operation; the engine's default when 0
	WaitForRegion bool          // wait for an unreachable region beyond the deadline
	NoWait        bool          // apply the objects, and wait only for CRDs and hooks; a failure after the last apply is kept
	Confirm       string        // the value that an error with reason "confirmation-required" asked for
	Check         string        // CheckServer: a dry run of all objects on the API server; empty: only where it is worth a request
	Strict        bool          // parameters that have no effect are violations, not warnings
	Secrets       bool          // of a preview: templates can look up existing Secrets, with masked values
	Manifests     bool          // of a preview of a new instance: return the objects, too
	Key           RequestKey    // makes the request idempotent
	Trace         string        // W3C traceparent of the request; empty: none

	// MayAttach returns nf.NotFound if the caller may not attach workloads to a
	// network, or nf.Forbidden if it may not create it. It is not called for networks
	// that they are attached to already. Nil: the caller may do both.
	MayAttach func(ctx context.Context, n Network, create bool) error

	// MayUse is MayAttach for the volumes that claims bind.
	MayUse func(context.Context, Volume) error

	// MayRegister returns nf.Forbidden if the caller may not register a region. It is
	// not called for regions of the instance. Nil: the caller may.
	MayRegister func(ctx context.Context, region string) error
}

// CheckServer asks for a check of all objects by the region's API server.
const CheckServer = "server"

// RequestKey identifies a client's request, so that the client can repeat it
// when the response was lost. The zero value means no key.
type RequestKey struct {
	Client string `json:"client,omitempty"` // the client that chose the key; keys of two clients are independent
	Key    string `json:"key,omitempty"`    // the Idempotency-Key header
	Digest string `json:"digest,omitempty"` // of the request: a different request with the same key is rejected
}

// Same reports whether both are the same key of the same client.
func (k RequestKey) Same(o RequestKey) bool {
	return k.Key != "" && k.Key == o.Key && k.Client == o.Client
}

// Repeats reports whether a request with this key repeats the one that made a
// record. It returns nf.Conflict if the key is the same, but not the request.
func (k RequestKey) Repeats(made RequestKey, op, subject string) (bool, error) {
	if !k.Same(made) {
		return false, nil
	}
	if k.Digest != made.Digest {
		return false, OtherRequest(op, subject)
	}
	return true, nil
}

// OtherRequest returns the error of a request whose key was used for another one.
func OtherRequest(op, subject string) error {
	return &Error{Kind: Conflict, Op: op, Subject: subject, Reason: ReasonIdempotency, Err: errors.New("another request was made under this key")}
}

// Preview is the expected effect of a request.
type Preview struct {
	Changes   []Change
	Placed    *Placed // how the region was chosen; nil: the request names it
	Warnings  []string
	Confirm   string     // the value that the request must contain; empty: no confirmation needed
	Manifests []Manifest // of the objects, in the order in which they are applied, and of the hooks; nil: not requested
}

// Manifest is an object as a package renders it. Its secrets are Masked.
type Manifest struct {
	Stage  string // empty for a hook
	File   string // in the package
	Line   int
	Events []HookEvent // of a hook
	Object map[string]any
}

// Validate returns nf.Invalid with a violation for every field that is wrong.
// Field names are those of the 2018 URL layout.
func (r InstantiateRequest) Validate() error {
	var v Violations
	switch {
	case r.Placement == nil:
		v = CheckID("cloud_region_id", r.Region)
	case r.Region != "":
		v = Violations{{Field: "placement", Message: "contradicts cloud_region_id"}}
	default:
		v = r.Placement.violations()
	}
	v = append(v, CheckNamespace("namespace", r.Namespace)...)
	if r.ID != "" {
		v = append(v, Subject{Kind: InstanceSubject, ID: r.ID}.CheckOwner("vnf_id")...)
	}
	if r.Project != "" {
		v = append(v, CheckID("project", r.Project)...)
	}
	if r.Name != "" {
		v = append(v, CheckID("vnf_instance_name", r.Name)...)
	}
	v = append(v, r.Spec.violations()...)
	v = append(v, r.Options.violations()...)
	return invalid("instantiate", "package "+r.Package, v)
}

// Validate returns nf.Invalid with a violation for every field that is wrong.
func (s Spec) Validate() error { return invalid("use", "specification", s.violations()) }

// Validate returns nf.Invalid with a violation for every field that is wrong.
func (r TerminateRequest) Validate() error {
	v := r.Options.violations()
	if r.Orphan && r.Claims == ClaimsDelete {
		v = append(v, Violation{Field: "claims", Message: "cannot be combined with orphan: the objects stay in place"})
	}
	if r.Grace != nil && *r.Grace < 0 {
		v = append(v, Violation{Field: "grace", Message: "must not be negative"})
	}
	if r.Orphan && r.Cascade {
		v = append(v, Violation{Field: "cascade", Message: "cannot be combined with orphan: the clusters stay in place"})
	}
	return invalid("use", "options", v)
}

// Validate returns nf.Invalid with a violation for every option that is wrong.
func (o Options) Validate() error { return invalid("use", "options", o.violations()) }

func (s Spec) violations() Violations {
	v := CheckID("csar_id", s.Package)
	v = append(v, CheckLabels("labels", s.Labels)...)
	v = append(v, CheckLabels("object_labels", s.Inputs.ObjectLabels)...)
	if s.Release != "" {
		v = append(v, CheckRelease("release", s.Release)...)
	}
	v = append(v, checkNumbers("parameters", s.Inputs.Parameters)...)
	v = append(v, checkNumbers("network_parameters", s.Inputs.Network)...)
	for i, answers := range s.Inputs.OOF {
		v = append(v, checkNumbers(fmt.Sprintf("oof_parameters[%d]", i), answers)...)
	}
	v = append(v, checkAmendments(s.Amendments)...)
	v = append(v, CheckNamespaces("namespaces", s.Namespaces)...)
	v = append(v, checkAttachments(s.Networks)...)
	v = append(v, CheckBindings(AskedVolumes(s.Volumes))...)
	v = append(v, s.Drift.violations()...)
	if s.Claims != "" && s.Claims != ClaimsKeep && s.Claims != ClaimsDelete {
		v = append(v, Violation{Field: "claims", Message: "must be keep or delete"})
	}
	v = append(v, CheckClusters(RequestedClusters(s.Workloads))...)
	v = append(v, s.AAI.violations()...)
	return append(v, CheckText("vnf_instance_description", s.Description)...)
}

// checkAmendments returns violations for amendments without a unique name, and
// for their packages and values.
func checkAmendments(all []Amendment) Violations {
	var v Violations
	names := map[string]bool{}
	for i, a := range all {
		field := fmt.Sprintf("amendments[%d]", i)
		switch {
		case a.Name == "":
			v = append(v, Violation{Field: field + ".name", Message: "is missing"})
		case names[a.Name]:
			v = append(v, Violation{Field: field + ".name", Message: fmt.Sprintf("%q is also the name of another amendment", a.Name)})
		}
		names[a.Name] = true
		v = append(v, CheckText(field+".name", a.Name)...)
		v = append(v, CheckID(field+".package", a.Package)...)
		v = append(v, checkNumbers(field+".parameters", a.Inputs.Parameters)...)
	}
	return v
}

// checkNumbers returns a violation for each whole number that is too large to
// keep all its digits in JSON.
func checkNumbers(field string, value any) Violations {
	const exact = 1 << 53
	var out Violations
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			out = append(out, checkNumbers(field+"."+key, inner)...)
		}
	case []any:
		for i, inner := range v {
			out = append(out, checkNumbers(fmt.Sprintf("%s[%d]", field, i), inner)...)
		}
	case float64:
		if math.Abs(v) >= exact && v == math.Trunc(v) {
			out = Violations{{Field: field, Message: "is an integer of more than 53 bits, whose last digits may be lost; give it as a string"}}
		}
	}
	return out
}

func (o Options) violations() Violations {
	var v Violations
	if o.OnFailure != "" && o.OnFailure != Undo && o.OnFailure != Keep {
		v = append(v, Violation{Field: "on_failure", Message: "must be undo or keep"})
	}
	if o.Check != "" && o.Check != CheckServer {
		v = append(v, Violation{Field: "validate", Message: `must be "server"`})
	}
	if o.Timeout < 0 || o.Timeout > MaxTimeout {
		v = append(v, Violation{Field: "timeout", Message: "must be between 0 and 24h"})
	}
	return v
}

func invalid(op, subject string, v Violations) error {
	if len(v) == 0 {
		return nil
	}
	return E(Invalid, op, subject, v)
}
