package onap

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/gorilla/mux"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// vnf is an instance with the data that this API stores about it.
type vnf struct {
	nf.Instance

	id      string // assigned by this API; differs from the record's after a move
	alias   bundle.Alias
	request instanceRequest
	undone  bool // its instantiation is being undone
}

// vnfs finds instances.
type vnfs struct {
	instances  Views
	operations Operations
	aliases    Aliases
}

// of returns the instance of a request's path, or nf.NotFound. As in ONAP, a
// terminating instance does not exist, and neither does one whose instantiation is being
// undone, or that another API created.
func (vs *vnfs) of(r *http.Request) (vnf, error) {
	return vs.get(r.Context(), mux.Vars(r)["instance"])
}

func (vs *vnfs) get(ctx context.Context, id string) (vnf, error) {
	v, err := vs.find(ctx, id)
	if err == nil && (v.State == nf.Terminating || v.undone) {
		err = noVNF()
	}
	return v, err
}

func noVNF() error { return nf.E(nf.NotFound, "get", "VNF instance", nil) }

// find returns an instance, even if it is terminating.
func (vs *vnfs) find(ctx context.Context, id string) (vnf, error) {
	if nf.CheckID("", id) != nil {
		return vnf{}, noVNF()
	}
	alias, err := vs.aliases.Alias(ctx, id)
	if err != nil {
		return vnf{}, err
	}
	in, err := vs.instances.Instance(ctx, alias.Engine)
	if err != nil {
		return vnf{}, err
	}
	in, undone, err := vs.present(ctx, in)
	if err != nil {
		return vnf{}, err
	}
	request, ours, err := requestOf(in)
	if err == nil && (!ours || idOf(in) != id) {
		err = noVNF()
	}
	return vnf{Instance: in, id: id, alias: alias, request: request, undone: undone}, err
}

// present returns an instance as its running operation has made it, and whether that is an
// instantiation which is being undone. While only hooks are left of an upgrade, its client
// has the response with the new request, but the record changes after the hooks.
func (vs *vnfs) present(ctx context.Context, in nf.Instance) (now nf.Instance, undone bool, err error) {
	if in.Operation == "" || in.State != nf.Updating && in.State != nf.Instantiating {
		return in, false, nil
	}
	op, err := vs.latest(ctx, in)
	switch {
	case err != nil:
		return in, false, err
	case op.State.Final(): // since the instance was read
		now, err = vs.instances.Instance(ctx, in.ID)
		return now, false, err
	case op.Verb == nf.Upgrade && pruned(op):
		return upgradedBy(op, in), false, nil
	}
	return in, deletes(op), nil
}

// upgradedBy returns an instance with the description that an upgrade gives it.
func upgradedBy(op nf.Operation, in nf.Instance) nf.Instance {
	in.Release, in.Annotations, in.Sensitive = op.Instance.Target.Release, op.Instance.Target.Annotations, op.Instance.Target.Sensitive
	return in
}

// list returns the instances that this API created and that the caller may see.
// Of an instance that is being moved, it returns the current one.
func (vs *vnfs) list(ctx context.Context) ([]vnf, error) {
	all, err := vs.instances.Instances(ctx)
	if err != nil {
		return nil, err
	}
	out := []vnf{}
	for _, in := range all {
		in, undone, err := vs.present(ctx, in)
		if nf.KindOf(err) == nf.NotFound || undone {
			continue
		}
		if err != nil {
			return nil, err
		}
		request, ours, err := requestOf(in)
		if err != nil {
			return nil, err
		}
		if !ours || in.State == nf.Terminating || in.State == nf.Instantiating && len(in.Inventory) == 0 { // no object was created yet
			continue
		}
		id := idOf(in)
		alias, err := vs.aliases.Alias(ctx, id)
		if err != nil {
			return nil, err
		}
		if alias.Engine != in.ID {
			continue
		}
		out = append(out, vnf{Instance: in, id: id, alias: alias, request: request})
	}
	slices.SortFunc(out, func(a, b vnf) int { return cmp.Compare(a.id, b.id) })
	return out, nil
}

// latest returns the running operation of an instance, or the last one.
func (vs *vnfs) latest(ctx context.Context, in nf.Instance) (nf.Operation, error) {
	op, err := vs.operations.Operation(ctx, cmp.Or(in.Operation, in.LastOperation))
	if nf.KindOf(err) == nf.NotFound { // operations are deleted after their retention
		return nf.Operation{}, nil
	}
	return op, err
}
