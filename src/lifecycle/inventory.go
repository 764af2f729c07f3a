package lifecycle

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// merge adds items to an inventory; one that is there already moves to its new
// stage.
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

// outside returns the inventory's entries that a plan does not have. What hooks
// have made is no part of any plan's stages, and not for it to remove; neither are
// the volumes of StatefulSets.
func outside(inventory []nf.Item, plan render.Plan) []nf.Item {
	planned := map[string]bool{}
	for _, obj := range plan.Objects() {
		planned[refOf(obj).Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(inventory), func(it nf.Item) bool { return planned[it.Key()] || it.Hook || it.Volume })
}

func isNamespace(ref nf.Ref) bool { return ref.Group == "" && ref.Kind == "Namespace" }

// itemOf returns the inventory's entry of an object.
func itemOf(stage int, obj *unstructured.Unstructured) nf.Item {
	_, mortal, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished")
	return nf.Item{Ref: refOf(obj), Stage: stage, Passing: mortal && obj.GroupVersionKind().GroupKind() == jobKind}
}

// definition reports whether others cannot be before the object is current.
func definition(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// works reports whether an object is there to do something and be done.
func works(ref nf.Ref) bool {
	return ref.Group == jobKind.Group && ref.Kind == jobKind.Kind || ref.Group == "" && ref.Kind == "Pod"
}

// jobKind is the only kind that goes by itself.
var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// passed reads the absence of an object that goes by itself, and its going, as
// what they are.
func passed(h nf.Health) nf.Health {
	if h.Status == nf.Absent || h.Status == nf.StatusDeleting {
		h.Status, h.Message, h.Done = nf.Current, "it is done, and goes by itself", true
	}
	return h
}

// itemsOf returns the inventory that a plan in force has, with what hooks have
// left of the former one, and the volumes that a removal was to delete. What is
// shared is in no inventory.
func itemsOf(plan render.Plan, former []nf.Item) []nf.Item {
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
	for _, it := range former {
		if (it.Hook || it.Volume) && !planned[it.Key()] {
			out = append(out, it)
		}
	}
	return out
}

// lasting returns the entries that are neither a hook's nor volumes of
// StatefulSets.
func lasting(inventory []nf.Item) []nf.Item {
	return slices.DeleteFunc(slices.Clone(inventory), func(it nf.Item) bool { return it.Hook || it.Volume })
}

// stagesOf returns the numbers of the stages that an inventory has, ascending.
func stagesOf(inventory []nf.Item) []int {
	var out []int
	for _, it := range inventory {
		out = append(out, it.Stage)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// refsOf returns the objects of a stage: those that may be deleted, and those
// that are kept.
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
