package lifecycle

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// merge adds items to an inventory; an item that is already there moves to its
// new stage, and stays adopted if it was.
func merge(inventory, items []nf.Item) []nf.Item {
	out := slices.Clone(inventory)
	at := make(map[string]int, len(out))
	for i, it := range out {
		at[it.Key()] = i
	}
	for _, it := range items {
		if i, ok := at[it.Key()]; ok {
			it.Adopted = it.Adopted || out[i].Adopted
			out[i] = it
			continue
		}
		at[it.Key()] = len(out)
		out = append(out, it)
	}
	return out
}

// outside returns the inventory's entries that a plan does not contain. It
// leaves out hook objects and the volumes of StatefulSets: they are not part of
// any plan's stages, and a prune must not delete them. An object that is shared in the
// plan was the instance's own, and is kept: a prune orphans it.
func outside(inventory []nf.Item, plan render.Plan) []nf.Item {
	own, shared := map[string]bool{}, map[string]bool{}
	for _, stage := range plan.Stages {
		for _, obj := range stage.Objects {
			if key := nf.RefOf(obj.Object).Key(); obj.Shared {
				shared[key] = true
			} else {
				own[key] = true
			}
		}
	}
	out := slices.DeleteFunc(slices.Clone(inventory), func(it nf.Item) bool { return own[it.Key()] || it.Hook || it.Volume })
	for i := range out {
		out[i].Keep = out[i].Keep || shared[out[i].Key()]
	}
	return out
}

// itemOf returns the inventory's entry of an object.
func itemOf(stage int, obj *unstructured.Unstructured) nf.Item {
	_, mortal, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished")
	return nf.Item{Ref: nf.RefOf(obj), Stage: stage, Passing: mortal && obj.GroupVersionKind().GroupKind() == jobKind}
}

// isDefinition reports whether other objects need the object to be current first.
func isDefinition(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// runsToCompletion reports whether an object runs to completion.
func runsToCompletion(ref nf.Ref) bool {
	return ref.Group == jobKind.Group && ref.Kind == jobKind.Kind || ref.Group == "" && ref.Kind == "Pod"
}

// jobKind is the only kind whose objects are deleted after they finish.
var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// itemsOf returns the inventory for a plan in force. It keeps hook objects of
// the former inventory, and volumes that a removal was to delete. Shared
// objects are in no inventory.
func itemsOf(plan render.Plan, previous []nf.Item) []nf.Item {
	var out []nf.Item
	planned := map[string]bool{}
	for i, stage := range plan.Stages {
		for _, obj := range stage.Objects {
			if obj.Shared {
				continue
			}
			it := itemOf(i, obj.Object)
			it.Keep, it.Adopted = obj.Keep, obj.Former != nil
			out, planned[it.Key()] = append(out, it), true
		}
	}
	for _, it := range previous {
		if (it.Hook || it.Volume) && !planned[it.Key()] {
			out = append(out, it)
		}
	}
	return out
}

// batch is items that are deleted at the same time.
type batch struct {
	turn  int // see render.DeletionTurn
	stage int // of the inventory; 0 if there is a turn
	items []nf.Item
}

// batchesOf returns the items in the order in which they are deleted: those that have a
// turn by it, and then the others from the last stage to the first, because a stage must
// be gone before the stage that it builds on is deleted.
func batchesOf(items []nf.Item) []batch {
	var out []batch
	for _, it := range items {
		b := batch{turn: render.DeletionTurn(schema.GroupKind{Group: it.Group, Kind: it.Kind})}
		if b.turn == 0 {
			b.stage = it.Stage
		}
		i := slices.IndexFunc(out, func(o batch) bool { return o.turn == b.turn && o.stage == b.stage })
		if i < 0 {
			out, i = append(out, b), len(out)
		}
		out[i].items = append(out[i].items, it)
	}
	turn := func(b batch) int { return cmp.Or(b.turn, render.LastTurn+1) }
	slices.SortFunc(out, func(a, b batch) int { return cmp.Or(cmp.Compare(turn(a), turn(b)), cmp.Compare(b.stage, a.stage)) })
	return out
}

// refs returns the objects of a batch: those to delete, and those to keep.
func (b batch) refs() (refs, kept []nf.Ref) {
	for _, it := range b.items {
		if it.Keep {
			kept = append(kept, it.Ref)
		} else {
			refs = append(refs, it.Ref)
		}
	}
	return refs, kept
}

// settled returns the planned objects that must be Current before items are deleted, if
// there are such items; see render.Settles.
func settled(plan render.Plan, items []nf.Item) []nf.Change {
	if !slices.ContainsFunc(items, func(it nf.Item) bool { return render.Settles(schema.GroupKind{Group: it.Group, Kind: it.Kind}) }) {
		return nil
	}
	var out []nf.Change
	for _, obj := range plan.Objects() {
		if render.DeletionTurn(obj.GroupVersionKind().GroupKind()) > 0 {
			out = append(out, nf.Change{Ref: nf.RefOf(obj)})
		}
	}
	return out
}
