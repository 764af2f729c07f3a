package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// DeletionGuard limits how much a change may delete without confirmation. A change that deletes objects whose data cannot be recreated
// always requires confirmation.
type DeletionGuard struct {
	Objects int     // deleting more objects requires confirmation; default 10
	Share   float64 // so does deleting a larger share of the instance's objects, if more than two; default 0.5
}

func (g *DeletionGuard) complete() {
	g.Objects = orDefault(g.Objects, 10)
	if g.Share <= 0 {
		g.Share = 0.5
	}
}

// digest returns the digest that must confirm a change that deletes the pruned
// objects of an instance, or "" if no confirmation is required. The digest
// covers the objects to be deleted, so it confirms nothing else.
func (g DeletionGuard) digest(in nf.Instance, pruned []nf.Item) string {
	pruned = slices.DeleteFunc(slices.Clone(pruned), func(it nf.Item) bool { return it.Keep })
	protected := slices.ContainsFunc(pruned, func(it nf.Item) bool { return render.Protected(schema.GroupKind{Group: it.Group, Kind: it.Kind}) })
	many := len(pruned) > g.Objects || len(pruned) > 2 && float64(len(pruned)) > g.Share*float64(len(nf.Judged(in.Inventory)))
	if !protected && !many {
		return ""
	}
	keys := make([]string, len(pruned))
	for i, it := range pruned {
		keys[i] = it.Key()
	}
	slices.Sort(keys)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", in.ID, in.Revision, strings.Join(keys, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// check rejects a change that requires confirmation and is not confirmed.
func (g DeletionGuard) check(op nf.Verb, in nf.Instance, pruned []nf.Item, confirmed string) error {
	wanted := g.digest(in, pruned)
	if wanted == "" || wanted == confirmed {
		return nil
	}
	var v nf.Violations
	for _, it := range pruned {
		if it.Keep {
			continue
		}
		message := "would be deleted"
		if render.Protected(schema.GroupKind{Group: it.Group, Kind: it.Kind}) {
			message = "would be deleted, and what it holds cannot be made again"
		}
		v = append(v, nf.Violation{Object: it.Ref, Message: message})
	}
	return &nf.Error{Kind: nf.Conflict, Op: string(op), Subject: "VNF instance " + in.ID, Reason: nf.ReasonConfirm, Confirm: wanted, Err: v}
}
