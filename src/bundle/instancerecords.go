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

// InstanceRecords stores what ONAP's API records about instances, by the ids
// that it assigned: moves to other regions, the history of configurations, and
// test runs. The active state of an instance is only in the engine's
// record, never here. It is safe for concurrent use.
type InstanceRecords struct {
	aliases  store.Table[Alias]
	versions store.Table[Version]
	tags     store.Table[Tag]
	runs     store.Table[Run]
}

// NewInstanceRecords returns the instance records in a store.
func NewInstanceRecords(kv store.KV) *InstanceRecords {
	return &InstanceRecords{
		aliases:  store.NewTable[Alias](kv, "onap/aliases/", "instance id"),
		versions: store.NewTable[Version](kv, "onap/configs/", "configuration version"),
		tags:     store.NewTable[Tag](kv, "onap/configtags/", "configuration tag"),
		runs:     store.NewTable[Run](kv, "onap/healthchecks/", "health check"),
	}
}

// InstanceRecords returns the instance records in the same store.
func (b *Bundles) InstanceRecords() *InstanceRecords { return NewInstanceRecords(b.cfg.KV) }

// Packages returns the packages that stored configuration versions were made
// from. A rollback to such a version needs its package.
func (ir *InstanceRecords) Packages(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	for v, err := range ir.versions.All(ctx, "") {
		if err != nil {
			return nil, err
		}
		out[v.Package] = true
	}
	return out, nil
}

// Sweep deletes the records of instances that no longer exist. Exists reports
// whether the engine has an instance.
func (ir *InstanceRecords) Sweep(ctx context.Context, exists func(ctx context.Context, id string) (bool, error)) error {
	known := map[string]bool{}
	gone := func(id string) (bool, error) {
		alive, asked := known[id]
		if asked {
			return !alive, nil
		}
		alias, err := ir.Alias(ctx, id)
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
		sweep(ctx, ir.versions, gone, func(v Version) (string, string) { return v.Instance, v.id() }),
		sweep(ctx, ir.tags, gone, func(t Tag) (string, string) { return t.Instance, t.id() }),
		sweep(ctx, ir.runs, gone, func(r Run) (string, string) { return r.Instance, r.id() }),
		ir.sweepLeaving(ctx, exists),
		// Order matters: the others need the aliases to find their instances.
		sweep(ctx, ir.aliases, gone, func(a Alias) (string, string) { return a.ID, a.ID }),
	)
}

// sweepLeaving drops deleted instances from the Leaving lists of the aliases.
func (ir *InstanceRecords) sweepLeaving(ctx context.Context, exists func(ctx context.Context, id string) (bool, error)) error {
	for a, err := range ir.aliases.All(ctx, "") {
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
		if _, err := ir.Realias(ctx, a.ID, func(a *Alias) error {
			a.Leaving = slices.DeleteFunc(a.Leaving, func(id string) bool { return slices.Contains(gone, id) })
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes the records whose instance is gone. Of returns a record's
// instance and its id in the table.
func sweep[T any](ctx context.Context, t store.Table[T], gone func(id string) (bool, error), of func(T) (instance, id string)) error {
	for record, err := range t.All(ctx, "") {
		if err != nil {
			return err
		}
		instance, id := of(record)
		is, err := gone(instance)
		if err == nil && is {
			err = nf.IgnoreNotFound(t.Delete(ctx, id))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folded returns a hash of a name for use in an id, because names may be any
// text of any length.
func folded(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
