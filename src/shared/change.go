package shared

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Users are the VNF instances that use the resources of a kind.
type Users interface {
	// Using returns the workloads of an instance whose pods use a resource. It returns
	// nf.NotFound if the instance does not exist.
	Using(ctx context.Context, instance, resource string) ([]nf.SharedWorkload, error)
	// Act accepts an action on an instance, and PreviewAct fails as Act would. Both
	// return nf.Busy while another operation of the instance runs.
	Act(ctx context.Context, instance string, req nf.ActRequest) (nf.Operation, error)
	PreviewAct(ctx context.Context, instance string, req nf.ActRequest) (nf.Preview, error)
}

// change is a change of a resource that its region accepts.
type change struct {
	before, after nf.Shared
	refs          []nf.Ref
	fields        []nf.Field
	users         []nf.SharedUser // that see it after a restart
	warnings      []string
	manual        []string // warnings about workloads that no action restarts; only for the caller, who may see them
}

// Change accepts a change of a resource, and returns the operation. It returns nf.Busy
// while another operation of the resource runs, and nf.Conflict if the resource is being
// removed. A change with Restart fails as the restart of each instance would, except that
// it waits for the operations of instances.
func (r *Resources) Change(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.Operation, error) {
	return r.accept(ctx, id, req.Key, func() (operation.Request, error) {
		c, err := r.change(ctx, id, req)
		if err != nil {
			return operation.Request{}, err
		}
		op := r.operation(c.before, nf.SharedChange, req.Timeout, req.Trace)
		task := r.cfg.Task(&op)
		task.Spec, op.Warnings = c.after.Spec, c.kept()
		task.Former = &nf.SharedAbout{Keep: c.before.Keep, Description: c.before.Description, Labels: c.before.Labels}
		if req.Restart {
			for _, u := range c.users {
				task.Restart = append(task.Restart, u.Subject.ID)
			}
		}
		return operation.Request{Operation: op, Lock: func(ctx context.Context, op nf.Operation) ([]store.Op, error) {
			taken, err := r.locks.TakeOp(ctx, op, c.before, func(s *nf.Shared) error {
				s.Keep, s.Description, s.Labels = c.after.Keep, c.after.Description, c.after.Labels
				s.State, s.Inventory = nf.SharedChanging, union(s.Inventory, c.refs)
				return nil
			})
			return []store.Op{taken}, err
		}}, nil
	})
}

// PreviewChange returns what Change would do, or fails as it would. It changes nothing.
func (r *Resources) PreviewChange(ctx context.Context, id string, req nf.SharedChangeRequest) (nf.SharedPreview, error) {
	c, err := r.change(ctx, id, req)
	if err != nil {
		return nf.SharedPreview{}, err
	}
	p := nf.SharedPreview{Fields: c.fields, Users: c.users, Warnings: slices.Concat(c.warnings, c.manual)}
	kept, err := r.cfg.Kind.Refs(c.after)
	if err != nil {
		return p, err
	}
	same := nf.Unchanged
	if len(c.fields) > 0 {
		same = nf.Configured
	}
	for _, ref := range union(c.before.Inventory, kept) {
		action := same
		if !contains(kept, ref) {
			action = nf.Deleted
		} else if !contains(c.before.Inventory, ref) {
			action = nf.Created
		}
		p.Changes = append(p.Changes, nf.Change{Ref: ref, Action: action})
	}
	return p, nil
}

// change prepares a change.
func (r *Resources) change(ctx context.Context, id string, req nf.SharedChangeRequest) (c change, err error) {
	if c.before, err = r.table.Get(ctx, id); err != nil {
		return c, err
	}
	if err := r.lockOf(&c.before).Free("change"); err != nil {
		return c, err
	}
	if c.after, err = r.edited(ctx, c.before, req.Edit); err != nil {
		return c, err
	}
	if c.refs, c.warnings, err = r.check(ctx, c.after); err != nil {
		return c, err
	}
	if c.fields = r.fields(c.before.Spec, c.after.Spec); len(c.fields) == 0 {
		return c, nil
	}
	c.warnings = append(c.warnings, advice(ctx, r.cfg, c.after)...)
	if c.users, err = r.usersOf(ctx, c.before); err != nil || !req.Restart {
		return c, err
	}
	for _, u := range c.users {
		if err := restartable(ctx, r.cfg.Users, u, req); err != nil {
			return c, err
		}
		_, manual := u.Restartable()
		for _, ref := range manual {
			c.manual = append(c.manual, fmt.Sprintf("%s of VNF instance %s cannot be restarted: its pods see the change when they are created again", ref, u.Subject.ID))
		}
	}
	return c, nil
}

// kept returns the warnings that the operation keeps. Its readers may not see all the
// instances, so they do not name the workloads.
func (c change) kept() []string {
	if len(c.manual) == 0 {
		return c.warnings
	}
	return append(slices.Clone(c.warnings), fmt.Sprintf("%d workloads cannot be restarted: their pods see the change when they are created again; a dry run lists them", len(c.manual)))
}

// usersOf returns the instances whose workloads use a resource.
func (r *Resources) usersOf(ctx context.Context, s nf.Shared) (out []nf.SharedUser, err error) {
	if r.cfg.Users == nil {
		return nil, nil
	}
	for holder, err := range r.Holders(ctx, s.ID) {
		if err != nil {
			return nil, err
		}
		if holder.Subject.Kind != nf.InstanceSubject {
			continue
		}
		using, err := r.cfg.Users.Using(ctx, holder.Subject.ID, s.Name)
		if err := nf.IgnoreNotFound(err); err != nil {
			return nil, err
		}
		if len(using) > 0 {
			out = append(out, nf.SharedUser{Holder: holder, Workloads: using})
		}
	}
	return out, nil
}

// restartable returns an error if the workloads of an instance cannot be restarted.
func restartable(ctx context.Context, users Users, u nf.SharedUser, req nf.SharedChangeRequest) error {
	if req.MayRestart != nil {
		if err := req.MayRestart(ctx, u.Holder); err != nil {
			return err
		}
	}
	can, _ := u.Restartable()
	if len(can) == 0 {
		return nil
	}
	_, err := users.PreviewAct(ctx, u.Subject.ID, nf.ActRequest{Verb: nf.Restart, Workloads: can})
	if nf.KindOf(err) == nf.Busy {
		return nil // the operation waits
	}
	return err
}

// edited returns a resource after an edit, with a normalized spec.
func (r *Resources) edited(ctx context.Context, s nf.Shared, edit func(*nf.Shared) error) (nf.Shared, error) {
	before := slices.Clone(s.Spec)
	s.Labels = maps.Clone(s.Labels)
	if err := edit(&s); err != nil {
		return s, err
	}
	v := slices.Concat(nf.CheckLabels("labels", s.Labels), nf.CheckText("description", s.Description))
	if len(v) > 0 {
		return s, nf.E(nf.Invalid, "change", r.noun(s.ID), v)
	}
	var err error
	s.Spec, err = r.normalize(ctx, s, before)
	return s, err
}

// restart restarts the workloads of the instances that the task names, and waits until
// their pods are ready. The undo of a change restarts them again; then, what fails is a
// warning.
func (r *run) restart(ctx context.Context) error {
	var begun [][2]string // the instance, and the operation
	for _, instance := range r.task().Restart {
		id, err := r.beginRestart(ctx, instance)
		if err := r.unlessUndoing(instance, err); err != nil {
			return err
		}
		if id != "" {
			begun = append(begun, [2]string{instance, id})
		}
	}
	for _, b := range begun {
		r.region.Report("waiting for operation " + b[1])
		op, err := r.attempt.Await(ctx, b[1])
		if err != nil {
			return err
		}
		if op.Failure == nil {
			continue
		}
		err = nf.E(nf.Failed, "restart", op.Subject.Noun(), nf.Errorf("its operation %s has failed: %s", op.ID, op.Failure.Said()))
		if err := r.unlessUndoing(b[0], err); err != nil {
			return err
		}
	}
	return nil
}

// unlessUndoing returns an error about an instance, unless the operation is undone. The
// error is hidden from readers who may not see the instance. The warning of an undo cannot
// be hidden, so it does not name the instance.
func (r *run) unlessUndoing(instance string, err error) error {
	about := []nf.Kind{nf.Conflict, nf.Failed, nf.Forbidden, nf.Invalid, nf.NotFound, nf.Timeout, nf.Unsupported}
	switch {
	case err == nil || operation.IsStoreError(err) || !slices.Contains(about, nf.KindOf(err)):
		return err
	case !r.op().Undoing:
		return nf.About(instance, err)
	}
	r.region.Warn("the workloads of a VNF instance were not restarted with the earlier spec; the operations of the instances have the cause")
	return nil
}

// beginRestart accepts the restart of an instance once, and returns the id of its
// operation; empty if there is nothing to restart.
func (r *run) beginRestart(ctx context.Context, instance string) (string, error) {
	key := nf.RequestKey{Client: r.op().Subject.String(), Key: r.op().ID + "/" + instance}
	if r.op().Undoing {
		key.Key += "/undo"
	}
	for {
		if err := r.attempt.Held(ctx); err != nil {
			return "", err
		}
		using, err := r.all.cfg.Users.Using(ctx, instance, r.resource.Name)
		can, _ := nf.SharedUser{Workloads: using}.Restartable()
		if err != nil || len(can) == 0 {
			return "", operation.RecordError(nf.IgnoreNotFound(err)) // it was terminated
		}
		op, err := r.all.cfg.Users.Act(ctx, instance, nf.ActRequest{Verb: nf.Restart, Workloads: can, Options: nf.Options{Key: key, Trace: r.op().Trace}})
		switch kind := nf.KindOf(err); {
		case err == nil || kind == nf.NotFound:
			return op.ID, nil
		case kind != nf.Busy:
			return "", err
		}
		if other := nf.OperationOf(err); other != "" {
			r.region.Report("waiting for operation " + other)
			_, err = r.attempt.Await(ctx, other)
		} else { // an earlier attempt has died while the request was accepted
			delay.For(ctx, cmp.Or(nf.RetryAfterOf(err), time.Second), nil)
			err = ctx.Err()
		}
		if err != nil {
			return "", err
		}
	}
}
