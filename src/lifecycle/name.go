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
}

func (n reservation) key() string { return n.Region + "/" + n.Namespace + "/" + n.Name }

func (t target) reservation() reservation {
	return reservation{Region: t.region, Namespace: t.namespace, Name: t.name, Instance: t.id}
}

// nameFree returns nf.Exists when another instance has the target's name, and
// nf.Busy while the one that has it is about to come or to go.
func (e *Engine) nameFree(ctx context.Context, t target) error {
	if t.name == "" {
		return nil
	}
	holder, err := e.names.Get(ctx, t.reservation().key())
	if err != nil {
		return unlessGone(err)
	}
	switch _, err := e.instances.Get(ctx, holder.Instance); {
	case nf.KindOf(err) == nf.NotFound:
		return &nf.Error{Kind: nf.Busy, Op: "instantiate", Subject: "VNF instance " + t.name, After: time.Second,
			Err: errors.New("another request for an instance of that name is under way")}
	case err != nil:
		return err
	}
	return nf.E(nf.Exists, "instantiate", "VNF instance "+t.name, nf.Violations{{
		Field:   "vnf_instance_name",
		Message: fmt.Sprintf("%q is the name of VNF instance %s in namespace %s of cloud region %s", t.name, holder.Instance, t.namespace, t.region),
	}})
}

// reserveName takes the target's name, if it has one; it fails as nameFree does.
func (e *Engine) reserveName(ctx context.Context, t target) error {
	if t.name == "" {
		return nil
	}
	err := e.names.Insert(ctx, t.reservation().key(), t.reservation())
	if nf.KindOf(err) == nf.Exists {
		return cmp.Or(e.nameFree(ctx, t), err)
	}
	return err
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
	return unlessGone(err)
}
