package bundle

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Alias maps an instance id that ONAP's API assigned to the engine's instance.
// The ids are equal until the instance is moved to another region.
type Alias struct {
	ID      string   `json:"id"`
	Engine  string   `json:"engine"`            // the current instance
	Coming  string   `json:"coming,omitempty"`  // instance that a running move creates; it may not exist yet
	Leaving []string `json:"leaving,omitempty"` // earlier instances that are still to be deleted
}

// all returns every instance of the alias.
func (a Alias) all() []string {
	out := append([]string{a.Engine}, a.Leaving...)
	if a.Coming != "" {
		out = append(out, a.Coming)
	}
	return out
}

// Behind reports whether the engine's instance is part of a move and is not the
// current one.
func (a Alias) Behind(engine string) bool {
	return a.Engine != engine && slices.Contains(a.all(), engine)
}

// Alias returns the alias of an id. An id that was never moved maps to itself,
// whether or not the instance exists.
func (ir *InstanceRecords) Alias(ctx context.Context, id string) (Alias, error) {
	a, err := ir.aliases.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		return Alias{ID: id, Engine: id}, nil
	}
	return a, err
}

// Realias edits the alias of an id and returns the result. Edit may be called
// more than once.
func (ir *InstanceRecords) Realias(ctx context.Context, id string, edit func(*Alias) error) (Alias, error) {
	err := ir.aliases.Insert(ctx, id, Alias{ID: id, Engine: id})
	if err != nil && nf.KindOf(err) != nf.Exists {
		return Alias{}, err
	}
	return ir.aliases.Update(ctx, id, edit)
}
