package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// reservation says which instance has a name in a namespace of a region.
type reservation struct {
	Region    string `json:"region"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Instance  string `json:"instance"`
	Operation string `json:"operation,omitempty"` // that makes the instance
}

func (n reservation) key() string { return n.Region + "/" + n.Namespace + "/" + n.Name }

func (t target) reservation(operation string) reservation {
	return reservation{Region: t.region, Namespace: t.namespace, Name: t.name, Instance: t.id, Operation: operation}
}

// nameFree returns nf.Exists when another instance has the target's name, and
// nf.Busy while the one that has it is about to come or to go. A name that was
// taken for an instance that never came is free.
func (e *Engine) nameFree(ctx context.Context, t target) error {
	if t.name == "" {
		return nil
	}
	key := t.reservation("").key()
	holder, err := e.names.Get(ctx, key)
	if err != nil {
		return nf.UnlessGone(err)
	}
	switch _, err := e.instances.Get(ctx, holder.Instance); {
	case nf.KindOf(err) == nf.NotFound:
		return e.freeName(ctx, t, holder)
	case err != nil:
		return err
	}
	return nf.E(nf.Exists, "instantiate", "VNF instance "+t.name, nf.Violations{{
		Field:   "vnf_instance_name",
		Message: fmt.Sprintf("%q is the name of VNF instance %s in namespace %s of cloud region %s", t.name, holder.Instance, t.namespace, t.region),
	}})
}

// freeName gives a name back whose instance is not there, unless somebody is at
// it. The operation is there before the name is taken, and ends only after it
// has been given back; but a write of the store may come late.
func (e *Engine) freeName(ctx context.Context, t target, holder reservation) error {
	op, err := e.operations.Get(ctx, holder.Operation)
	switch {
	case holder.Operation == "", err == nil && !op.State.Final():
		return nameBusy(t)
	case err != nil && nf.KindOf(err) != nf.NotFound:
		return err
	}
	return e.releaseName(ctx, nf.Instance{ID: holder.Instance, Name: holder.Name, Region: holder.Region, Namespace: holder.Namespace})
}

// reserveName takes the target's name, if it has one, for an operation; it fails
// as nameFree does.
func (e *Engine) reserveName(ctx context.Context, t target, operation string) error {
	if t.name == "" {
		return nil
	}
	r := t.reservation(operation)
	err := e.names.Insert(ctx, r.key(), r)
	if nf.KindOf(err) == nf.Exists {
		if holder, e2 := e.names.Get(ctx, r.key()); e2 == nil && holder.Instance == t.id {
			return nil // taken by the request's twin, for the same instance
		}
		return cmp.Or(e.nameFree(ctx, t), nameBusy(t)) // it has just become free
	}
	return err
}

func nameBusy(t target) error {
	return &nf.Error{Kind: nf.Busy, Op: "instantiate", Subject: "VNF instance " + t.name, After: time.Second,
		Err: errors.New("another request for an instance of that name is under way")}
}

var errAnothers = errors.New("another instance has the name by now")

// releaseNameOf gives back the name of an instance whose request was never
// accepted.
func (e *Engine) releaseNameOf(ctx context.Context, op nf.Operation) error {
	for n, err := range e.names.All(ctx, op.Region+"/"+op.Namespace+"/") {
		if err != nil {
			return err
		}
		if n.Instance == op.Instance {
			return e.releaseName(ctx, nf.Instance{ID: n.Instance, Name: n.Name, Region: n.Region, Namespace: n.Namespace})
		}
	}
	return nil
}

func (e *Engine) releaseName(ctx context.Context, in nf.Instance) error {
	if in.Name == "" {
		return nil
	}
	key := reservation{Region: in.Region, Namespace: in.Namespace, Name: in.Name}.key()
	err := e.names.DeleteIf(ctx, key, func(n reservation) error {
		if n.Instance != in.ID {
			return errAnothers // this is being repeated
		}
		return nil
	})
	if errors.Is(err, errAnothers) {
		return nil
	}
	return nf.UnlessGone(err)
}
