package shared

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Create accepts a new resource that the holder of the request holds, and returns the
// operation that creates it. If the region has a resource with the name, its driver
// and its spec must be equal: then the holder holds it, too, and the id of the
// operation is empty. Otherwise Create returns nf.Exists with the differences. It
// returns nf.Invalid for a wrong spec, nf.Unsupported if the region does not serve
// what the resource needs, and nf.Conflict for objects of others.
func (r *Resources) Create(ctx context.Context, req nf.SharedRequest) (nf.Operation, error) {
	if err := req.Validate(r.cfg.Subject); err != nil {
		return nf.Operation{}, err
	}
	s, err := r.normalized(ctx, req.Resource)
	if err != nil {
		return nf.Operation{}, err
	}
	op, err := r.accept(ctx, s.ID, req.Key, func() (operation.Request, error) {
		_, err := r.table.Get(ctx, s.ID)
		if err == nil {
			return operation.Request{}, nf.E(nf.Exists, "create", r.noun(s.ID), nil)
		}
		if nf.KindOf(err) != nf.NotFound {
			return operation.Request{}, err
		}
		return r.create(ctx, s, Named(req.Holder), req)
	})
	if nf.KindOf(err) != nf.Exists {
		return op, err
	}
	there, err := r.table.Get(ctx, s.ID)
	if err != nil {
		return op, err
	}
	return r.join(ctx, there, s, req)
}

// normalize returns the spec of a resource as its kind normalizes it for the region.
func (r *Resources) normalize(ctx context.Context, s nf.Shared, before json.RawMessage) (json.RawMessage, error) {
	region, err := r.cfg.Regions.Region(ctx, s.Region)
	if err != nil {
		if nf.KindOf(err) == nf.NotFound {
			err = nf.E(nf.NotFound, "create", r.noun(s.Name), nf.Violations{{Field: "cloud_region_id", Message: fmt.Sprintf("%q does not exist", s.Region)}})
		}
		return nil, err
	}
	in := Place{Region: region, Open: func() (Cluster, error) { return r.cfg.Open(ctx, s.Region) }}
	if before != nil {
		if in.Attached, err = r.attached(ctx, s.ID); err != nil {
			return nil, err
		}
	}
	return r.cfg.Kind.Normalize(ctx, in, s, before)
}

// attached reports whether something besides names may use a resource: an instance, or
// the objects of one that was removed without them.
func (r *Resources) attached(ctx context.Context, id string) (bool, error) {
	for holder, err := range r.Holders(ctx, id) {
		if err != nil {
			return false, err
		}
		if holder.Subject.Kind != nf.HolderSubject || strings.HasPrefix(holder.Subject.ID, nf.OrphansOf) {
			return true, nil
		}
	}
	return false, nil
}

// normalized returns a new resource with its id and the canonical form of its spec.
func (r *Resources) normalized(ctx context.Context, s nf.Shared) (nf.Shared, error) {
	s.ID = nf.SharedID(s.Region, s.Name)
	var err error
	s.Spec, err = r.normalize(ctx, s, nil)
	return s, err
}

// join adds the holder of a request to a resource that exists.
func (r *Resources) join(ctx context.Context, there, wanted nf.Shared, req nf.SharedRequest) (nf.Operation, error) {
	if v := r.differences(there, wanted); len(v) > 0 {
		return nf.Operation{}, nf.E(nf.Exists, "create", r.noun(wanted.ID), v)
	}
	holder := Named(req.Holder)
	had, err := r.holds.Has(ctx, there.ID, holder)
	if err != nil {
		return nf.Operation{}, err
	}
	s, err := r.Use(ctx, there.ID, holder)
	switch {
	case nf.KindOf(err) != nf.Busy:
		return nf.Operation{}, err
	case s.State == nf.SharedCreating:
		return r.ledger.Get(ctx, s.Operation) // the answer waits for it
	case !had:
		err = errors.Join(err, r.holds.Drop(ctx, there.ID, holder))
	}
	return nf.Operation{}, err
}

// differences returns a violation for each difference between a resource and another
// one of its name.
func (r *Resources) differences(there, wanted nf.Shared) nf.Violations {
	if there.Driver != wanted.Driver {
		return nf.Violations{{Field: "driver", Message: fmt.Sprintf("the %s exists with the driver %s", r.cfg.Subject, there.Driver)}}
	}
	var v nf.Violations
	for _, f := range r.fields(there.Spec, wanted.Spec) {
		has, _ := json.Marshal(f.Old) // what was decoded can be encoded
		wants, _ := json.Marshal(f.New)
		v = append(v, nf.Violation{Field: f.Path, Message: fmt.Sprintf("the %s exists with %s instead of %s", r.cfg.Subject, has, wants)})
	}
	return v
}

// fields returns the differences of two normalized specs.
func (r *Resources) fields(before, after json.RawMessage) []nf.Field {
	if bytes.Equal(before, after) {
		return nil
	}
	var has, wants any
	if errors.Join(json.Unmarshal(before, &has), json.Unmarshal(after, &wants)) != nil {
		return []nf.Field{{Path: r.cfg.Field, Old: string(before), New: string(after)}}
	}
	return different(r.cfg.Field, has, wants)
}

// different returns the fields in which two values differ.
func different(path string, has, wants any) []nf.Field {
	left, ok := has.(map[string]any)
	right, both := wants.(map[string]any)
	if !ok || !both {
		if reflect.DeepEqual(has, wants) {
			return nil
		}
		return []nf.Field{{Path: path, Old: has, New: wants}}
	}
	var out []nf.Field
	keys := slices.Concat(slices.Collect(maps.Keys(left)), slices.Collect(maps.Keys(right)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		out = append(out, different(strings.TrimPrefix(path+"."+key, "."), left[key], right[key])...)
	}
	return out
}

// create returns the request for a new resource with its first holder. The task names
// the holder of req, whose hold ends if the request is not accepted.
func (r *Resources) create(ctx context.Context, s nf.Shared, holder nf.Holder, req nf.SharedRequest) (operation.Request, error) {
	refs, warnings, err := r.check(ctx, s)
	if err != nil {
		return operation.Request{}, err
	}
	warnings = append(warnings, advice(ctx, r.cfg, s)...)
	op := r.operation(s, nf.SharedCreate, req.Timeout, req.Trace)
	r.cfg.Task(&op).Holder, op.Warnings = req.Holder, warnings
	s.State, s.Inventory, s.Created = nf.SharedCreating, refs, op.Accepted
	s.Failure, s.Operation, s.Claim, s.Last = nf.Text{}, "", "", ""
	r.lockOf(&s).Take(op)
	return operation.Request{Operation: op, Lock: func(ctx context.Context, _ nf.Operation) ([]store.Op, error) {
		hold, err := r.holds.AddOp(s.ID, holder)
		if err != nil {
			return nil, err
		}
		created, err := r.locks.CreateOp(ctx, s)
		return []store.Op{hold, created}, err
	}}, nil
}

// check returns the objects that a resource may get, and warnings, if its region accepts
// them.
func (r *Resources) check(ctx context.Context, s nf.Shared) (refs []nf.Ref, warnings []string, err error) {
	if checker, ok := r.cfg.Kind.(RegionChecker); ok {
		region, err := r.cfg.Regions.Region(ctx, s.Region)
		if err != nil {
			return nil, nil, err
		}
		if warnings, err = checker.CheckRegion(region, s); err != nil {
			return nil, nil, err
		}
	}
	c, err := r.cfg.Open(ctx, s.Region)
	if err != nil {
		return nil, nil, err
	}
	refs, err = r.cfg.Kind.Check(ctx, c, s)
	return refs, warnings, err
}

// advice returns what the region of a resource may lack, beside what check returns.
func advice(ctx context.Context, cfg Config, s nf.Shared) []string {
	adviser, ok := cfg.Kind.(Adviser)
	if !ok {
		return nil
	}
	c, err := cfg.Open(ctx, s.Region)
	if err != nil {
		return nil // check has returned it
	}
	return adviser.Advise(ctx, c, s)
}

// remove accepts the removal of a resource without holders, except that of the request,
// whose hold ends with the acceptance: if the request is refused, it remains.
func (r *Resources) remove(ctx context.Context, seen nf.Shared, req nf.SharedReleaseRequest) (nf.Operation, error) {
	return r.accept(ctx, seen.ID, req.Key, func() (operation.Request, error) {
		if err := r.lockOf(&seen).Free("remove"); err != nil {
			return operation.Request{}, err
		}
		op := r.operation(seen, nf.SharedRemove, req.Timeout, req.Trace)
		r.cfg.Task(&op).Failed = seen.State == nf.SharedFailed
		return operation.Request{Operation: op, Lock: func(ctx context.Context, op nf.Operation) ([]store.Op, error) {
			var ops []store.Op
			if req.Holder != "" {
				var err error
				if ops, err = r.holds.DropOps(ctx, seen.ID, Named(req.Holder)); err != nil {
					return nil, err
				}
			}
			taken, err := r.locks.TakeOp(ctx, op, seen, func(s *nf.Shared) error { s.State = nf.SharedDeleting; return nil })
			return append(ops, taken), err
		}}, nil
	})
}

// operation returns a new operation of a resource.
func (r *Resources) operation(s nf.Shared, verb nf.Verb, timeout time.Duration, trace string) nf.Operation {
	op := r.acceptor.New(r.subjectOf(s.ID), timeout)
	op.Region, op.Project, op.Verb, op.OnFailure, op.Trace = s.Region, nf.ProjectOf(s.Project), verb, nf.Undo, trace
	if verb == nf.SharedRemove {
		op.OnFailure = nf.Keep // what is deleted cannot be restored
	}
	return op
}

// accept executes a request, unless it was already executed under the same key. Keys
// are those of the requests to one resource.
func (r *Resources) accept(ctx context.Context, id string, key nf.RequestKey, prepare func() (operation.Request, error)) (nf.Operation, error) {
	if key.Key != "" {
		key.Client += "\x00" + r.noun(id)
	}
	return r.acceptor.Accept(ctx, key, prepare)
}

// withdraw deletes the hold of a request that was not accepted, unless another request
// has created the resource.
func (r *Resources) withdraw(ctx context.Context, op nf.Operation) error {
	holder := r.cfg.Task(&op).Holder
	if holder == "" {
		return nil
	}
	// Order matters: a request that creates the resource from now on writes the hold again.
	drop, err := r.holds.DropOps(ctx, op.Subject.ID, Named(holder))
	if err != nil {
		return err
	}
	return r.table.WriteIfAbsent(ctx, op.Subject.ID, drop...)
}
