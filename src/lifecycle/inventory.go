package lifecycle

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// merge adds items to an inventory; an item that is already there moves to its
// new stage.
func merge(inventory, items []nf.Item) []nf.Item {
	out := slices.Clone(inventory)
	at := make(map[string]int, len(out))
	for i, it := range out {
		at[it.Key()] = i
	}
	for _, it := range items {
		if i, ok := at[it.Key()]; ok {
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
// any plan's stages, and a prune must not delete them.
func outside(inventory []nf.Item, plan render.Plan) []nf.Item {
	planned := map[string]bool{}
	for _, obj := range plan.Objects() {
		planned[refOf(obj).Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(inventory), func(it nf.Item) bool { return planned[it.Key()] || it.Hook || it.Volume })
}

// itemOf returns the inventory's entry of an object.
func itemOf(stage int, obj *unstructured.Unstructured) nf.Item {
	_, mortal, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished")
	return nf.Item{Ref: refOf(obj), Stage: stage, Passing: mortal && obj.GroupVersionKind().GroupKind() == jobKind}
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
			it.Keep = obj.Keep
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

// stagesOf returns the stage numbers of an inventory, ascending.
func stagesOf(inventory []nf.Item) []int {
	var out []int
	for _, it := range inventory {
		out = append(out, it.Stage)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// refsOf returns the objects of a stage: those to delete, and those to keep.
func refsOf(inventory []nf.Item, stage int) (refs, kept []nf.Ref) {
	for _, it := range inventory {
		switch {
		case it.Stage != stage:
		case it.Keep:
			kept = append(kept, it.Ref)
		default:
			refs = append(refs, it.Ref)
		}
	}
	return refs, kept
}
