package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// SharedPreview is what a change of a network or a volume would do.
type SharedPreview struct {
	Fields   []FieldChange `json:"fields"`  // differences of the spec
	Changes  []Change      `json:"changes"` // of its objects in the region
	Users    []SharedUser  `json:"users"`   // whose pods see the change only when they are created again
	Hidden   int           `json:"hidden_users,omitempty"`
	Warnings []string      `json:"warnings"`
}

// SharedUser is an instance with the workloads that use a network.
type SharedUser struct {
	Instance  string           `json:"vnf_id"`
	Workloads []SharedWorkload `json:"workloads"`
}

// SharedWorkload is an object whose pods use a network.
type SharedWorkload struct {
	Ref

	Restartable bool `json:"restartable"` // a request with restart restarts it
}

// SharedPreviewOf converts a preview.
func SharedPreviewOf(p nf.SharedPreview) SharedPreview {
	return SharedPreview{
		Fields: List(p.Fields, func(f nf.Field) FieldChange { return FieldChange(f) }), Changes: List(p.Changes, ChangeOf),
		Users: List(p.Users, func(u nf.SharedUser) SharedUser {
			return SharedUser{u.Subject.ID, List(u.Workloads, func(w nf.SharedWorkload) SharedWorkload { return SharedWorkload{RefOf(w.Ref), w.Restartable} })}
		}),
		Hidden: p.Hidden, Warnings: notNil(p.Warnings),
	}
}
