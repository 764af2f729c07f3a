package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"

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

// nameFree returns nf.Exists when another instance has the target's name.
func (e *Engine) nameFree(ctx context.Context, t target) error {
	if t.name == "" {
		return nil
	}
	holder, err := e.names.Get(ctx, t.reservation().key())
	if err != nil {
		return unlessGone(err)
	}
	return nf.E(nf.Exists, "instantiate", "VNF instance "+t.name, nf.Violations{{
		Field:   "vnf_instance_name",
		Message: fmt.Sprintf("%q is the name of VNF instance %s in namespace %s of cloud region %s", t.name, holder.Instance, t.namespace, t.region),
	}})
}

// reserveName takes the target's name, if it has one, and returns what gives it
// back; nf.Exists when another instance has it.
func (e *Engine) reserveName(ctx context.Context, t target) (release func(), err error) {
	if t.name == "" {
		return func() {}, nil
	}
	key := t.reservation().key()
	err = e.names.Insert(ctx, key, t.reservation())
	if nf.KindOf(err) == nf.Exists {
		return nil, cmp.Or(e.nameFree(ctx, t), err)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		if err := e.names.Delete(ctx, key); err != nil {
			e.cfg.Logger.WarnContext(ctx, "an instance name stays reserved until the next start", "name", key, "error", err)
		}
	}, nil
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
			return unlessGone(e.names.Delete(ctx, n.key()))
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

// sweepNames gives back the names of instances that do not exist: their
// requests died before they were accepted.
func (e *Engine) sweepNames(ctx context.Context, known map[string]bool) error {
	names, err := e.names.List(ctx, "")
	if err != nil {
		return fmt.Errorf("cannot recover names: %w", err)
	}
	var errs []error
	for _, n := range names {
		if !known[n.Instance] {
			errs = append(errs, unlessGone(e.names.Delete(ctx, n.key())))
		}
	}
	return errors.Join(errs...)
}
