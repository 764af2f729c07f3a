package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// Ref identifies an object in a cloud region.
type Ref struct {
	APIVersion string `json:"api_version"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// RefOf converts the identity of an object.
func RefOf(r nf.Ref) Ref {
	return Ref{APIVersion: r.APIVersion(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Violation is one error in an input. Field also names the object, for people;
// programs use Object.
type Violation struct {
	Object  *Ref   `json:"object,omitempty"`
	Field   string `json:"field,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`

	Region string             `json:"cloud_region_id,omitempty"` // that a placement does not choose
	Reason nf.PlacementReason `json:"reason,omitempty"`          // why it does not
}

// ViolationsOf converts violations.
func ViolationsOf(violations nf.Violations) []Violation {
	var out []Violation
	for _, v := range violations {
		shown := Violation{Field: v.Place(), File: v.File, Line: v.Line, Message: v.Said().String(), Region: v.Region, Reason: v.Reason}
		if (v.Object != nf.Ref{}) {
			shown.Object = new(RefOf(v.Object))
		}
		out = append(out, shown)
	}
	return out
}
