package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Ledger is what ONAP's API remembers of instances, by the ids that it gave
// them: where they have moved to, the history of their configurations, and the
// runs of their tests. What is in force at present is said by the engine's own
// record of an instance, and never here. It is safe for concurrent use.
type Ledger struct {
	aliases  store.Table[Alias]
	versions store.Table[Version]
	tags     store.Table[Tag]
	runs     store.Table[Run]
}

// NewLedger returns the ledger of a store.
func NewLedger(kv store.KV) *Ledger {
	return &Ledger{
		aliases:  store.NewTable[Alias](kv, "onap/aliases/", "instance id"),
		versions: store.NewTable[Version](kv, "onap/configs/", "configuration version"),
		tags:     store.NewTable[Tag](kv, "onap/configtags/", "configuration tag"),
		runs:     store.NewTable[Run](kv, "onap/healthchecks/", "health check"),
	}
}

// Ledger returns the ledger of the store that the bundles are in.
func (b *Bundles) Ledger() *Ledger { return NewLedger(b.cfg.KV) }

// Packages returns the packages that versions of configurations were made from:
// a return to one of them needs its package.
func (l *Ledger) Packages(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	for v, err := range l.versions.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		out[v.Package] = true
	}
	return out, nil
}

// Sweep forgets what is remembered of instances that are gone. Exists tells
// whether the engine knows an instance.
func (l *Ledger) Sweep(ctx context.Context, exists func(ctx context.Context, id string) (bool, error)) error {
	known := map[string]bool{}
	gone := func(id string) (bool, error) {
		alive, asked := known[id]
		if asked {
			return !alive, nil
		}
		alias, err := l.Alias(ctx, id)
		if err != nil {
			return false, err
		}
		for _, engine := range alias.all() {
			there, err := exists(ctx, engine)
			if err != nil {
				return false, err
			}
			alive = alive || there
		}
		known[id] = alive
		return !alive, nil
	}
	return errors.Join(
		sweep(ctx, l.versions, gone, func(v Version) (string, string) { return v.Instance, v.id() }),
		sweep(ctx, l.tags, gone, func(t Tag) (string, string) { return t.Instance, t.id() }),
		sweep(ctx, l.runs, gone, func(r Run) (string, string) { return r.Instance, r.id() }),
		l.sweepLeaving(ctx, exists),
		// Last: they tell where the instances of all the others are.
		sweep(ctx, l.aliases, gone, func(a Alias) (string, string) { return a.ID, a.ID }),
	)
}

// sweepLeaving drops from the aliases the instances that have left.
func (l *Ledger) sweepLeaving(ctx context.Context, exists func(ctx context.Context, id string) (bool, error)) error {
	for a, err := range l.aliases.All(ctx, "") {
		if err != nil {
			return err
		}
		var gone []string
		for _, engine := range a.Leaving {
			there, err := exists(ctx, engine)
			if err != nil {
				return err
			}
			if !there {
				gone = append(gone, engine)
			}
		}
		if len(gone) == 0 {
			continue
		}
		if _, err := l.Realias(ctx, a.ID, func(a *Alias) error {
			a.Leaving = slices.DeleteFunc(a.Leaving, func(id string) bool { return slices.Contains(gone, id) })
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes the records whose instance is gone. Of tells a record's instance
// and its id in the table.
func sweep[T any](ctx context.Context, t store.Table[T], gone func(id string) (bool, error), of func(T) (instance, id string)) error {
	for record, err := range t.All(ctx, "") {
		if err != nil {
			return err
		}
		instance, id := of(record)
		is, err := gone(instance)
		if err == nil && is {
			err = nf.UnlessGone(t.Delete(ctx, id))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folded is a name as a part of an id: names are any text, and of any length.
func folded(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
