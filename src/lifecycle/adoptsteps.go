package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// adoptObjects writes the objects into the inventory, and then makes the instance
// their owner. Of a new instance, these are the objects that existed when the request
// was accepted; the next steps apply them.
func (a *applier) adoptObjects(ctx context.Context) error {
	if a.run.op().Instance.Adopts == nil {
		return errors.New("cannot adopt without a claim")
	}
	items := itemsOf(a.run.plan, nil)
	adopts := a.run.op().Verb == nf.Adopt
	if !adopts {
		items = slices.DeleteFunc(items, func(it nf.Item) bool { return !it.Adopted })
	}
	if err := a.run.inventory(ctx, func(inventory []nf.Item) []nf.Item {
		return merge(inventory, slices.Concat(a.leftItems(inventory), items))
	}); err != nil {
		return err
	}
	refs := make([]nf.Ref, len(items))
	for i, it := range items {
		refs[i] = it.Ref
	}
	changes, err := a.run.cluster.Adopt(ctx, a.run.op().Subject, *a.run.op().Instance.Adopts, refs)
	var left []nf.Change
	if err == nil {
		left, err = a.adoptHooks(ctx)
	}
	a.run.attempt.KeepChanges(slices.Concat(changes, left))
	if err != nil {
		return err
	}
	absent := 0
	for _, c := range changes {
		if c.UID == "" {
			absent++
		}
	}
	now := a.run.attempt.Now()
	return a.run.attempt.Save(ctx, func(op *nf.Operation) { // a client waits for it
		step := &op.Steps[len(op.Steps)-1]
		step.Objects, step.Current, step.Changes = len(refs), len(refs)-absent, len(changes)+len(left)
		if absent > 0 {
			step.Message = fmt.Sprintf("%d of %d objects do not exist", absent, len(refs))
		}
		if adopts {
			op.Applied = now
		}
	})
}

// giveBack restores the content of the objects that the instance has adopted. Those
// that it does not own, or that were deleted, stay as they are.
func (a *applier) giveBack(ctx context.Context, former []*unstructured.Unstructured) error {
	drifts, err := a.run.cluster.Drift(ctx, a.run.op().Subject, former, nil)
	if err != nil {
		return err
	}
	var ours []*unstructured.Unstructured
	var left []string
	for i, d := range drifts {
		switch {
		case d.Message != "":
			left = append(left, fmt.Sprintf("%s was not restored: %s", d.Ref, d.Message))
		case !d.Missing:
			ours = append(ours, former[i])
		}
	}
	if err := a.run.attempt.Held(ctx); err != nil {
		return err
	}
	changes, err := a.run.cluster.Correct(ctx, a.run.op().Subject, ours, nil)
	a.run.attempt.KeepChanges(changes)
	a.run.counted(len(former), len(changes), len(changes))
	if len(left) > 0 {
		said := a.run.redactor.values.Text(strings.Join(left, "; "))
		a.run.attempt.Note(func(op *nf.Operation) { op.Steps[len(op.Steps)-1].Report(said) })
	}
	return err
}

// leftItems returns inventory entries for the objects that hooks may have left before the
// instance. Those that an earlier attempt has created are the instance's own.
func (a *applier) leftItems(inventory []nf.Item) []nf.Item {
	var out []nf.Item
	for _, h := range a.run.plan.Hooks {
		it := itemOf(len(a.run.plan.Stages), h.Object)
		created := slices.ContainsFunc(inventory, func(was nf.Item) bool { return was.Hook && !was.Adopted && was.Key() == it.Key() })
		it.Hook, it.Adopted = true, a.run.op().Verb != nf.Adopt && !created
		out = append(out, it)
	}
	return out
}

// adoptHooks makes the instance the owner of the objects that hooks have left,
// and returns them. The next run of the hooks would conflict with them, and no
// other step deletes them.
func (a *applier) adoptHooks(ctx context.Context) ([]nf.Change, error) {
	var left []nf.Change
	there := map[string]bool{}
	for _, h := range a.run.plan.Hooks {
		if err := a.run.attempt.Held(ctx); err != nil {
			return left, err
		}
		changes, err := a.run.cluster.Adopt(ctx, a.run.op().Subject, selectorOf(h), []nf.Ref{nf.RefOf(h.Object)})
		if err != nil {
			return left, err
		}
		for _, c := range changes {
			if c.UID != "" && !there[c.Key()] {
				left, there[c.Key()] = append(left, c), true
			}
		}
	}
	return left, a.run.inventory(ctx, func(inventory []nf.Item) []nf.Item {
		return slices.DeleteFunc(slices.Clone(inventory), func(it nf.Item) bool { return it.Hook && !there[it.Key()] })
	})
}
