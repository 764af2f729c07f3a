package wire

import (
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// DriftPolicy is what the service does about changes of an instance by other clients.
type DriftPolicy struct {
	Mode   nf.DriftMode  `json:"mode,omitempty"`
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// DriftIgnore names fields that other clients may change.
type DriftIgnore struct {
	Object string `json:"object,omitempty"`
	Path   string `json:"path"`
}

// DriftPolicyOf converts a policy; nil if there is none.
func DriftPolicyOf(p nf.DriftPolicy) *DriftPolicy {
	if p.Mode == "" && len(p.Ignore) == 0 {
		return nil
	}
	return &DriftPolicy{Mode: p.Mode, Ignore: List(p.Ignore, func(i nf.DriftIgnore) DriftIgnore { return DriftIgnore(i) })}
}

// Domain converts a policy.
func (p *DriftPolicy) Domain() nf.DriftPolicy {
	if p == nil {
		return nf.DriftPolicy{}
	}
	out := nf.DriftPolicy{Mode: p.Mode}
	for _, i := range p.Ignore {
		out.Ignore = append(out.Ignore, nf.DriftIgnore(i))
	}
	return out
}

// ObjectDrift is how an object differs from the one that the service has applied.
type ObjectDrift struct {
	Missing bool         `json:"missing,omitempty"`
	Message string       `json:"message,omitempty"`
	Fields  []DriftField `json:"fields,omitempty"`
}

// DriftField is a field that differs.
type DriftField struct {
	Path        string     `json:"path"`
	Applied     any        `json:"applied,omitempty"`
	Found       any        `json:"found,omitempty"`
	Taken       bool       `json:"taken,omitempty"`
	Manager     string     `json:"manager,omitempty"`
	Subresource string     `json:"subresource,omitempty"`
	Changed     *time.Time `json:"changed_at,omitempty"`
}

// WithDrift adds the state of the instance's drift.
func (s InstanceSummary) WithDrift(d nf.InstanceDrift) InstanceSummary {
	s.DriftState = d.State
	return s
}

// WithObjectDrift adds the drift of the instance and its objects.
func (in Instance) WithObjectDrift(d nf.InstanceDrift) Instance {
	in.InstanceSummary = in.WithDrift(d)
	in.DriftMessage = d.Message
	if !d.Since.IsZero() {
		in.DriftSince = &d.Since
	}
	drifts := map[Ref]*ObjectDrift{}
	for _, o := range d.Objects {
		drifts[RefOf(o.Ref)] = &ObjectDrift{o.Missing, o.Message, List(o.Fields, driftFieldOf)}
	}
	for i := range in.Objects {
		in.Objects[i].Drift = drifts[in.Objects[i].Ref]
	}
	return in
}

func driftFieldOf(f nf.DriftField) DriftField {
	out := DriftField{Path: f.Path, Applied: f.Applied, Found: f.Found, Taken: f.Taken, Manager: f.Manager, Subresource: f.Via}
	if !f.At.IsZero() {
		out.Changed = &f.At
	}
	return out
}
