package nf

import (
	"fmt"
	"math"
	"time"
)

// Spec is what a caller may decide about an instance, and change later.
type Spec struct {
	Package     string
	Inputs      Inputs
	Labels      map[string]string
	Description string
	Release     string            // what a chart calls its release; empty: the instance's name, or else its id
	Namespaces  []string          // further ones that objects may be in, besides those that the package opens
	Amendments  []Amendment       // names are distinct
	Annotations map[string]string // what an API remembers with the revision, for itself
}

// InstantiateRequest asks for a new instance.
type InstantiateRequest struct {
	Spec

	ID        string // chosen by the caller; empty: the engine makes one
	Region    string
	Project   string // DefaultProject when empty
	Namespace string // "default" when empty
	Name      string // unique in its region and namespace when given
	Options
}

// UpgradeRequest asks for a new revision of an instance.
type UpgradeRequest struct {
	// Edit changes the present spec into the wanted one. It may be called more
	// than once.
	Edit func(*Spec) error
	Options
}

// ConfigureRequest asks for other amendments of an instance. What its own package
// rendered to stays as it is: nothing of it is rendered again.
type ConfigureRequest struct {
	// Edit changes the present amendments, and annotations, into the wanted ones.
	// It may be called more than once; what else it changes is refused.
	Edit func(*Spec) error
	Options
}

// AdoptRequest asks for what runs in a region already to become an instance,
// without a change to any of it.
type AdoptRequest struct {
	InstantiateRequest

	// Claim is what its objects bear. Empty: that of the release of a chart,
	// which the instance's Release names and its package is the chart of; then
	// what was released is what the instance becomes, and not what the package
	// renders to.
	Claim Claim
}

// Claim is marks by which objects are known to be somebody's: they bear all of
// them.
type Claim struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// TestRequest asks for a run of the test hooks of an instance's package.
type TestRequest struct {
	Options
}

// RollbackRequest asks for the return to a kept revision of an instance.
type RollbackRequest struct {
	Revision int // 0: the one before that in force
	Options
}

// TerminateRequest asks for the removal of an instance.
type TerminateRequest struct {
	Orphan  bool // leave the objects in place, as nobody's
	Volumes bool // delete the volume claims that StatefulSets made, too; without Orphan only
	Options
}

// Options say how an operation is carried out.
type Options struct {
	OnFailure OnFailure     // Undo when empty
	Timeout   time.Duration // of the whole operation; the engine's default when 0
	Patient   bool          // wait for a region that is away, beyond the deadline
	NoWait    bool          // objects are applied, and only definitions and hooks are waited for; what fails after the last apply is kept
	Confirm   string        // what a refusal with reason "confirm" asked for
	Secrets   bool          // of a preview: templates find the Secrets that they look up, with masked values
	Key       RequestKey    // makes repeating the request harmless
	Trace     string        // W3C traceparent of the request; empty: none
}

// RequestKey is what a client names a request by, so that it can be repeated
// when its answer was lost. The zero value is no key.
type RequestKey struct {
	Client string `json:"client,omitempty"` // who chose the key; keys of two clients never meet
	Key    string `json:"key,omitempty"`    // the Idempotency-Key header
	Digest string `json:"digest,omitempty"` // of what was asked: another request under the same key is refused
}

// Same reports whether both are the same key of the same client.
func (k RequestKey) Same(o RequestKey) bool {
	return k.Key != "" && k.Key == o.Key && k.Client == o.Client
}

// Preview is what a request would do.
type Preview struct {
	Changes  []Change
	Warnings []string
	Confirm  string // what the request will have to bring; empty when it needs no confirmation
}

// Validate returns nf.Invalid with a violation for every field that is wrong.
// Field names are those of the founding API, which all requests come in.
func (r InstantiateRequest) Validate() error {
	v := CheckID("cloud_region_id", r.Region)
	v = append(v, CheckNamespace("namespace", r.Namespace)...)
	if r.ID != "" {
		v = append(v, CheckID("vnf_id", r.ID)...)
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
	if r.Orphan && r.Volumes {
		v = append(v, Violation{Field: "claims", Message: "cannot be delete when the objects stay in place"})
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
	return append(v, CheckText("vnf_instance_description", s.Description)...)
}

// checkAmendments returns a violation for each amendment without a name of its
// own, and what is wrong with their packages and values.
func checkAmendments(all []Amendment) Violations {
	var v Violations
	names := map[string]bool{}
	for i, a := range all {
		field := fmt.Sprintf("amendments[%d]", i)
		switch {
		case a.Name == "":
			v = append(v, Violation{Field: field + ".name", Message: "is missing"})
		case names[a.Name]:
			v = append(v, Violation{Field: field + ".name", Message: fmt.Sprintf("%q is the name of another amendment, too", a.Name)})
		}
		names[a.Name] = true
		v = append(v, CheckText(field+".name", a.Name)...)
		v = append(v, CheckID(field+".package", a.Package)...)
		v = append(v, checkNumbers(field+".parameters", a.Inputs.Parameters)...)
	}
	return v
}

// checkNumbers returns a violation for each whole number that is too large to
// have come through JSON with all its digits.
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
			out = Violations{{Field: field, Message: "is a whole number of more than 53 bits, whose last digits may be lost; give it as a text"}}
		}
	}
	return out
}

func (o Options) violations() Violations {
	var v Violations
	if o.OnFailure != "" && o.OnFailure != Undo && o.OnFailure != Keep {
		v = append(v, Violation{Field: "onFailure", Message: "is neither undo nor keep"})
	}
	if o.Timeout < 0 || o.Timeout > MaxTimeout {
		v = append(v, Violation{Field: "timeout", Message: "is not between 0 and 24h"})
	}
	return v
}

func invalid(op, subject string, v Violations) error {
	if len(v) == 0 {
		return nil
	}
	return E(Invalid, op, subject, v)
}
