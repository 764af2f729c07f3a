package bundle

import (
	"context"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Alias says which of the engine's instances stands behind an id that ONAP's API
// gave. They are the same until the instance is moved to another region.
type Alias struct {
	ID      string   `json:"id"`
	Engine  string   `json:"engine"`            // the instance that it means
	Coming  string   `json:"coming,omitempty"`  // the instance that a move is making; it may not be there yet
	Leaving []string `json:"leaving,omitempty"` // instances that it meant before, and that are to be removed
}

// all returns every instance that the alias speaks of.
func (a Alias) all() []string {
	out := append([]string{a.Engine}, a.Leaving...)
	if a.Coming != "" {
		out = append(out, a.Coming)
	}
	return out
}

// Behind reports whether the engine's instance is part of a move, and not the
// one that the alias means.
func (a Alias) Behind(engine string) bool {
	return a.Engine != engine && slices.Contains(a.all(), engine)
}

// Alias returns what an id means. One that was never moved means itself, whether
// there is such an instance or not.
func (l *Ledger) Alias(ctx context.Context, id string) (Alias, error) {
	a, err := l.aliases.Get(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		return Alias{ID: id, Engine: id}, nil
	}
	return a, err
}

// Aliases returns what every id means that was ever moved.
func (l *Ledger) Aliases(ctx context.Context) (map[string]Alias, error) {
	out := map[string]Alias{}
	for a, err := range l.aliases.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		out[a.ID] = a
	}
	return out, nil
}

// Realias edits what an id means, and returns it as it is then. Edit may be
// called more than once.
func (l *Ledger) Realias(ctx context.Context, id string, edit func(*Alias) error) (Alias, error) {
	err := l.aliases.Insert(ctx, id, Alias{ID: id, Engine: id})
	if err != nil && nf.KindOf(err) != nf.Exists {
		return Alias{}, err
	}
	return l.aliases.Update(ctx, id, edit)
}
