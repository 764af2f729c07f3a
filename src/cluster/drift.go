package cluster

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Drift compares objects that the owner has applied with those in the region, and
// returns the result for each, in the given order. Only fields that the owner applies
// count, by a dry run of server-side apply: not those that the API server, a
// controller or an admission webhook has added. A field has drifted if its value
// differs, or if only other field managers own it. Ignored fields are left out, and
// so is a number of replicas that an autoscaler sets; if autoscalers cannot be
// listed, no number of replicas counts. Lists and values are cut to a bounded size.
//
// If an object cannot be compared, its message says why. Drift returns
// nf.Unreachable if the region does not respond, and otherwise fails as Apply does.
func (c *Cluster) Drift(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, ignore []nf.DriftIgnore) ([]nf.Drift, error) {
	found, err := c.client.drifts(ctx, owner, objects, ignore)
	if err != nil {
		return nil, err
	}
	out := make([]nf.Drift, len(found))
	for i, d := range found {
		out[i] = d.shown(objects[i])
	}
	return out, nil
}

// Correct applies those of the objects that have drifted, and returns a change for
// each object that it reached, in the given order. A field that is ignored keeps the
// value that another manager has given it. An object that cannot be compared stays as
// it is. Correct fails as Apply does, and is idempotent.
func (c *Cluster) Correct(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, ignore []nf.DriftIgnore) ([]nf.Change, error) {
	found, err := c.client.drifts(ctx, owner, objects, ignore)
	if err != nil {
		return nil, err
	}
	var changed []*unstructured.Unstructured
	for i, d := range found {
		if !d.any() || d.why != nil {
			continue
		}
		u := objects[i].DeepCopy()
		for _, f := range d.ignored {
			removeAt(u.Object, f.path) // another manager owns it, so its value stays
		}
		changed = append(changed, u)
	}
	done, err := c.Apply(ctx, owner, changed)
	applied := map[string]nf.Change{}
	for _, change := range done {
		applied[change.Key()] = change
	}
	var changes []nf.Change
	for _, d := range found {
		change, reached := applied[d.ref.Key()]
		if !d.any() || d.why != nil {
			change, reached = nf.Change{Ref: d.ref, Action: nf.Unchanged, UID: d.uid, Generation: d.generation}, true
		}
		if d.why != nil {
			said := nf.TextOf(d.why)
			change.Message, change.Mentions = said.Message, said.Mentions
		}
		if reached {
			changes = append(changes, change)
		}
	}
	return changes, err
}

// objectDrift is the drift of one object.
type objectDrift struct {
	ref        nf.Ref
	uid        string
	generation int64
	missing    bool
	why        error // why it cannot be compared
	fields     []fieldDrift
	ignored    []fieldDrift // those whose values differ
	managers   []fieldOwner
}

func (d objectDrift) any() bool { return d.missing || d.why != nil || len(d.fields) > 0 }

// drifts compares objects.
func (c *client) drifts(ctx context.Context, owner nf.Subject, objects []*unstructured.Unstructured, ignore []nf.DriftIgnore) ([]objectDrift, error) {
	targets, err := c.appliable(ctx, objects)
	if err != nil {
		return nil, err
	}
	scaled, warning, err := c.withoutReplicas(ctx, owner, targets, objects, nil)
	if err != nil {
		return nil, err
	}
	out := make([]objectDrift, len(objects))
	err = each(c.parallel, len(objects), func(i int) error {
		own := ignore
		if scaled[i] != objects[i] || warning != "" {
			own = append(slices.Clip(own), nf.DriftIgnore{Path: nf.FieldPath(replicasPath)})
		}
		a := application{client: c, owner: owner, target: targets[i], object: objects[i]}
		d, err := a.drift(ctx, own)
		if err = c.region.failObject(ctx, "compare", targets[i].ref, err); nf.KindOf(err) == nf.Unreachable || ctx.Err() != nil {
			return err
		}
		d.ref, d.why = targets[i].ref, err
		out[i] = d
		return nil
	})
	return out, err
}

// drift compares the object.
func (a *application) drift(ctx context.Context, ignore []nf.DriftIgnore) (objectDrift, error) {
	var would, live unstructured.Unstructured
	exists, err := a.rehearse(ctx, &would)
	if err != nil || !exists {
		return objectDrift{missing: err == nil}, err
	}
	if err = a.client.get(ctx, a.target, &live); apierrors.IsNotFound(err) {
		return objectDrift{missing: true}, nil
	} else if err != nil {
		return objectDrift{}, err
	}
	if theirs, yes := otherOwner(a.owner, a.target.ref, &live); yes {
		return objectDrift{}, notOwned("compare", theirs)
	}
	if live.GetDeletionTimestamp() != nil {
		return objectDrift{}, nf.E(nf.Busy, "compare", a.target.ref.String(), fmt.Errorf("it is being deleted"))
	}
	wanted, err := fieldOwners(&would)
	if err != nil {
		return objectDrift{}, err
	}
	present, err := fieldOwners(&live)
	if err != nil {
		return objectDrift{}, err
	}
	d := objectDrift{uid: string(live.GetUID()), generation: live.GetGeneration(), managers: present}
	d.compare(&live, &would, ownedFields(wanted, manager(a.owner), true), ownedFields(present, manager(a.owner), false))
	d.leaveOut(a.target.ref, ignore)
	return d, nil
}

// fieldDrift is a field that differs.
type fieldDrift struct {
	path  fieldpath.Path // of the field, or of the item of a list that is missing with it
	taken bool           // its value does not differ
	old   any            // in the region
	now   any            // as applied
}

// compare finds the applied fields that differ, or that are not the owner's in the
// region.
func (d *objectDrift) compare(live, would *unstructured.Unstructured, applied, own *fieldpath.Set) {
	seen := map[string]bool{}
	applied.Leaves().Iterate(func(leaf fieldpath.Path) {
		wanted, there := valueAt(would.Object, leaf)
		if !there {
			return // an admission webhook has removed it
		}
		is, has := valueAt(live.Object, leaf)
		f := fieldDrift{path: leaf.Copy(), old: is, now: wanted}
		switch {
		case !has:
			f.path = missingFrom(live.Object, f.path)
			f.now, _ = valueAt(would.Object, f.path)
		case reflect.DeepEqual(is, wanted) && own.Has(leaf):
			return
		case reflect.DeepEqual(is, wanted):
			f.taken = true
		}
		if key := f.path.String(); !seen[key] {
			seen[key] = true
			d.fields = append(d.fields, f)
		}
	})
}

// leaveOut takes ignored fields out of the drift.
func (d *objectDrift) leaveOut(ref nf.Ref, ignore []nf.DriftIgnore) {
	var kept []fieldDrift
	for _, f := range d.fields {
		path, covered := shownPath(f.path), false
		for _, i := range ignore {
			covered = covered || i.Covers(ref, path)
		}
		switch {
		case !covered:
			kept = append(kept, f)
		case !f.taken:
			d.ignored = append(d.ignored, f)
		}
	}
	d.fields = kept
}
