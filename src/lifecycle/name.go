package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// reservation records which instance has a name in a namespace of a region.
type reservation struct {
	Region    string `json:"region"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Instance  string `json:"instance"`
	Operation string `json:"operation,omitempty"` // that creates the instance
}

func (n reservation) key() string { return n.Region + "/" + n.Namespace + "/" + n.Name }

func (t target) reservation(operation string) reservation {
	return reservation{Region: t.region, Namespace: t.namespace, Name: t.name, Instance: t.id, Operation: operation}
}

// nameFree returns nf.Exists if another instance has the target's name, and
// nf.Busy while an instance of that name is being created or removed. It
// releases a name that was taken for an instance that was never created.
func (s *records) nameFree(ctx context.Context, t target) error {
	if t.name == "" {
		return nil
	}
	key := t.reservation("").key()
	holder, err := s.names.Get(ctx, key)
	if err != nil {
		return nf.IgnoreNotFound(err)
	}
	switch _, err := s.instances.Get(ctx, holder.Instance); {
	case nf.KindOf(err) == nf.NotFound:
		return s.freeName(ctx, t, holder)
	case err != nil:
		return err
	}
	taken := nf.Textf("%q is the name of %s in namespace %s of cloud region %s", t.name, nf.Mention(holder.Instance), t.namespace, t.region)
	return nf.E(nf.Exists, "instantiate", "VNF instance "+t.name, nf.Violations{nf.Violation{Field: "vnf_instance_name"}.Saying(taken)})
}

// freeName releases the name of an instance that does not exist, unless an
// operation may still use it. The operation is recorded before the name is
// taken, and ends only after the name is released. However, the store may apply
// a write late.
func (s *records) freeName(ctx context.Context, t target, holder reservation) error {
	op, err := s.ledger.Get(ctx, holder.Operation)
	switch {
	case holder.Operation == "", err == nil && !op.State.Final():
		return nameBusy(t)
	case err != nil && nf.KindOf(err) != nf.NotFound:
		return err
	}
	return s.releaseName(ctx, nf.Instance{ID: holder.Instance, Name: holder.Name, Region: holder.Region, Namespace: holder.Namespace})
}

// reserveName returns the op that takes the target's name for an operation. There
// is none if the target has no name. It fails as nameFree does.
func (s *records) reserveName(ctx context.Context, t target, operation string) ([]store.Op, error) {
	if t.name == "" {
		return nil, nil
	}
	wanted := t.reservation(operation)
	holder, revision, err := s.names.GetRevision(ctx, wanted.key())
	switch {
	case err == nil && holder.Instance == t.id: // a duplicate of the request took it, for the same instance
		check, err := s.names.CheckOp(wanted.key(), revision)
		return []store.Op{check}, err
	case err == nil:
		return nil, cmp.Or(s.nameFree(ctx, t), nameBusy(t)) // it has just become free
	case nf.KindOf(err) != nf.NotFound:
		return nil, err
	}
	named, err := s.names.InsertOp(wanted.key(), wanted)
	return []store.Op{named}, err
}

func nameBusy(t target) error {
	return &nf.Error{Kind: nf.Busy, Op: "instantiate", Subject: "VNF instance " + t.name, RetryAfter: time.Second,
		Err: errors.New("another request is creating an instance with that name")}
}

// releaseNameOf releases the name of an instance whose request was never
// accepted. Other reports that another request for an instance with the same id
// has a name.
func (s *records) releaseNameOf(ctx context.Context, op nf.Operation) (other bool, err error) {
	for n, err := range s.names.All(ctx, op.Region+"/"+op.Instance.Namespace+"/") {
		switch {
		case err != nil:
			return false, err
		case n.Instance != op.Subject.ID:
		case n.Operation != op.ID:
			return true, nil
		default:
			return false, s.releaseName(ctx, nf.Instance{ID: n.Instance, Name: n.Name, Region: n.Region, Namespace: n.Namespace})
		}
	}
	return false, nil
}

// releaseName releases the name of an instance, if the instance still has it.
func (s *records) releaseName(ctx context.Context, in nf.Instance) error {
	if in.Name == "" {
		return nil
	}
	return s.names.DeleteWhere(ctx, nameKey(in), heldBy(in))
}

// nameKey returns the key of an instance's name.
func nameKey(in nf.Instance) string {
	return reservation{Region: in.Region, Namespace: in.Namespace, Name: in.Name}.key()
}

// heldBy reports whether an instance has a reserved name.
func heldBy(in nf.Instance) func(reservation) bool {
	return func(n reservation) bool { return n.Instance == in.ID }
}
