package nf

import "time"

// Spec is what a caller may decide about an instance, and change later.
type Spec struct {
	Package     string
	Inputs      Inputs
	Labels      map[string]string
	Description string
}

// InstantiateRequest asks for a new instance.
type InstantiateRequest struct {
	Spec

	Region    string
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

// Options say how an operation is carried out.
type Options struct {
	OnFailure OnFailure     // Undo when empty
	Timeout   time.Duration // of the whole operation; the engine's default when 0
}

// Preview is what a request would do.
type Preview struct {
	Changes  []Change
	Warnings []string
}

// Validate returns nf.Invalid with a violation for every field that is wrong.
// Field names are those of the founding API, which all requests come in.
func (r InstantiateRequest) Validate() error {
	v := CheckID("cloud_region_id", r.Region)
	v = append(v, CheckNamespace("namespace", r.Namespace)...)
	if r.Name != "" {
		v = append(v, CheckID("vnf_instance_name", r.Name)...)
	}
	v = append(v, r.Spec.violations()...)
	v = append(v, r.Options.violations()...)
	return invalid("instantiate", "package "+r.Package, v)
}

// Validate returns nf.Invalid with a violation for every field that is wrong.
func (s Spec) Validate() error { return invalid("use", "specification", s.violations()) }

// Validate returns nf.Invalid with a violation for every option that is wrong.
func (o Options) Validate() error { return invalid("use", "options", o.violations()) }

func (s Spec) violations() Violations {
	v := CheckID("csar_id", s.Package)
	v = append(v, CheckLabels("labels", s.Labels)...)
	return append(v, CheckText("vnf_instance_description", s.Description)...)
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
