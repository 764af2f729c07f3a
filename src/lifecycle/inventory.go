package lifecycle

import (
	"context"
	"slices"
	"time"

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

// outside returns the inventory's entries that a plan does not have.
func outside(inventory []nf.Item, plan render.Plan) []nf.Item {
	planned := map[string]bool{}
	for _, obj := range plan.Objects() {
		planned[refOf(obj).Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(inventory), func(it nf.Item) bool { return planned[it.Key()] })
}

func isNamespace(ref nf.Ref) bool { return ref.Group == "" && ref.Kind == "Namespace" }

// itemOf returns the inventory's entry of an object.
func itemOf(stage int, obj *unstructured.Unstructured) nf.Item {
	_, mortal, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "ttlSecondsAfterFinished")
	return nf.Item{Ref: refOf(obj), Stage: stage, Passing: mortal && obj.GroupVersionKind().GroupKind() == jobKind}
}

// jobKind is the only kind that goes by itself.
var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// passed reads the absence of an object that goes by itself, and its going, as
// what they are.
func passed(h nf.Health) nf.Health {
	if h.Status == nf.Absent || h.Status == nf.StatusDeleting {
		h.Status, h.Message = nf.Current, "it is done, and goes by itself"
	}
	return h
}

// itemsOf returns the inventory that a plan in force has.
func itemsOf(plan render.Plan) []nf.Item {
	var out []nf.Item
	for stage, obj := range plan.Objects() {
		out = append(out, itemOf(stage, obj))
	}
	return out
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

func refsOf(inventory []nf.Item, stage int) []nf.Ref {
	var out []nf.Ref
	for _, it := range inventory {
		if it.Stage == stage {
			out = append(out, it.Ref)
		}
	}
	return out
}

// withTimeout is context.WithTimeout where no timeout means none.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}
