package lifecycle

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Owners know which subject an instance is a part of.
type Owners interface {
	// Owner returns the subject that alone may terminate an instance, or the zero Subject.
	Owner(ctx context.Context, instance string) (nf.Subject, error)
}

// unowned returns nf.Conflict, which names the owner, if an instance has an owner other
// than the one that asks.
func (pr *preparer) unowned(ctx context.Context, verb nf.Verb, id string, by nf.Subject) error {
	if pr.owners == nil {
		return nil
	}
	owner, err := pr.owners.Owner(ctx, id)
	if err != nil || owner == (nf.Subject{}) || owner == by {
		return err
	}
	return &nf.Error{Kind: nf.Conflict, Op: string(verb), Subject: "VNF instance " + id, Reason: nf.ReasonHeld, Err: nf.Errorf("it is a member of %s; change or terminate that", owner.Mention())}
}
