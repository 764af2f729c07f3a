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

// Brake says how much a change may delete without being confirmed. Kinds that
// hold what cannot be made again are never deleted by a change without that.
type Brake struct {
	Objects int     // more than so many objects; default 10
	Share   float64 // more than this part of the instance's objects, and more than two; default 0.5
}

func (b *Brake) complete() {
	b.Objects = defaulted(b.Objects, 10)
	if b.Share <= 0 {
		b.Share = 0.5
	}
}

// reasonConfirm is the reason of a Conflict that a confirmation lifts.
const reasonConfirm = "confirm"

// hold returns what a change has to be confirmed with that deletes the pruned
// objects of an instance; empty when it need not be. The digest is of what will
// be deleted, so that it confirms nothing else.
func (b Brake) hold(in nf.Instance, pruned []nf.Item) string {
	pruned = slices.DeleteFunc(slices.Clone(pruned), func(it nf.Item) bool { return it.Keep })
	protected := slices.ContainsFunc(pruned, func(it nf.Item) bool { return render.Protected(schema.GroupKind{Group: it.Group, Kind: it.Kind}) })
	many := len(pruned) > b.Objects || len(pruned) > 2 && float64(len(pruned)) > b.Share*float64(len(lasting(in.Inventory)))
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

// check refuses a change that has to be confirmed and is not.
func (b Brake) check(op nf.Verb, in nf.Instance, pruned []nf.Item, confirmed string) error {
	wanted := b.hold(in, pruned)
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
	return &nf.Error{Kind: nf.Conflict, Op: string(op), Subject: "VNF instance " + in.ID, Reason: reasonConfirm, Confirm: wanted, Err: v}
}
