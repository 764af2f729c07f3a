package sol003

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// verbs are the verbs of the operations that carry out occurrences.
func verbOf(o nf.OccurrenceOperation) nf.Verb {
	switch o {
	case nf.OccurrenceInstantiate:
		return nf.Instantiate
	case nf.OccurrenceTerminate:
		return nf.Terminate
	case nf.OccurrenceScale:
		return nf.Scale
	case nf.OccurrenceHeal:
		return nf.Heal
	case nf.OccurrenceModify:
		return nf.VNFModify
	case nf.OccurrenceConnectivity:
		return nf.VNFConnect
	default:
		return nf.VNFChangePackage
	}
}

// plan prepares an occurrence of a VNF. It writes nothing.
type plan func(ctx context.Context, v nf.VNF) (record, error)

// errChecked ends the preparation of a request that is only checked.
var errChecked = errors.New("the request can be accepted")

// begin accepts a request for an occurrence of a VNF, unless the same request was accepted
// under its key before, and returns the occurrence. It returns nf.Busy while another one
// runs, and nf.Conflict while one has failed temporarily.
func (m *Manager) begin(ctx context.Context, id string, kind nf.OccurrenceOperation, req nf.VNFRequest, prepare plan) (nf.Occurrence, error) {
	verb := verbOf(kind)
	return m.accept(ctx, id, req.Key, func() (operation.Request, error) {
		v, _, err := m.vnf(ctx, id)
		if err != nil {
			return operation.Request{}, err
		}
		if err := m.unused(ctx, string(verb), v); err != nil {
			return operation.Request{}, err
		}
		r, err := prepare(ctx, v)
		if err == nil {
			err = m.resolve.hooked(ctx, kind, req, &r, v)
		}
		if err == nil && req.Check {
			err = errChecked
		}
		if err != nil {
			return operation.Request{}, err
		}
		op := m.operation(v, verb, req.Trace)
		op.Region = regionOf(v, r.Task.After) // of an instantiation, the region that it is to be in
		started := op.Accepted.Round(0)
		if !started.After(v.Updated) {
			started = v.Updated.Add(time.Nanosecond)
		}
		state := nf.OccurrenceStarting
		if kind == nf.OccurrenceModify {
			state = nf.OccurrenceProcessing
		}
		r.Task.Before, r.Task.Trace = v, req.Trace
		r.Occurrence = nf.Occurrence{
			ID: newID(started), VNF: id, Project: v.Project, Region: regionOf(v, r.Task.After), Operation: kind, State: state, Entered: started, Started: started, Params: req.Params,
			Attempts: []string{op.ID}, CanUndo: kind != nf.OccurrenceTerminate && (kind != nf.OccurrenceHeal || !stacked(v)),
		}
		op.VNF.Occurrence = r.ID
		return m.first(v, r, op), nil
	})
}

// regionOf returns the region of a VNF before or after an occurrence.
func regionOf(before, after nf.VNF) string {
	if before.Instantiated == nil {
		return after.Scope().Region
	}
	return before.Instantiated.Region
}

// first returns the request of the first attempt at an occurrence. It holds the package
// that the VNF will have, and the OpenStack cloud that it will be in: the engine holds a
// Kubernetes cluster.
func (m *Manager) first(v nf.VNF, r record, op nf.Operation) operation.Request {
	return operation.Request{
		Operation: op,
		Store: func(context.Context, *nf.Operation) ([]store.Op, error) {
			inserted, err := m.occurrences.InsertOp(r.ID, r)
			return []store.Op{inserted}, err
		},
		Lock: func(ctx context.Context, op nf.Operation) (ops []store.Op, err error) {
			for _, pkg := range unheld(v, r.Task.After) {
				held, err := m.cfg.Packages.HoldOps(ctx, holding(v, pkg))
				if err != nil {
					return nil, err
				}
				ops = append(ops, held...)
			}
			if stacked(r.Task.After) && !stacked(v) {
				held, err := m.cfg.Packages.HoldOps(ctx, cloudHolding(v, r.Task.After.Instantiated.Region))
				if err != nil {
					return nil, err
				}
				ops = append(ops, held...)
			}
			taken, err := m.locks.TakeOp(ctx, op, v, func(now *nf.VNF) error {
				if now.Occurrence != v.Occurrence {
					return nf.E(nf.Conflict, string(op.Verb), "VNF "+v.ID, errors.New("another request has changed it in the meantime"))
				}
				now.Occurrence = r.ID
				return nil
			})
			return append(ops, taken), err
		},
	}
}

// operation returns a new attempt at an occurrence.
func (m *Manager) operation(v nf.VNF, verb nf.Verb, trace string) nf.Operation {
	op := m.acceptor.New(subjectOf(v.ID), 0)
	op.Project, op.Region, op.Verb, op.Trace, op.OnFailure = v.Project, v.Scope().Region, verb, trace, nf.Keep
	return op
}

// accept accepts a request, unless it was accepted before under the same key. Keys are
// those of the requests to one VNF.
func (m *Manager) accept(ctx context.Context, vnf string, key nf.RequestKey, prepare func() (operation.Request, error)) (nf.Occurrence, error) {
	key.Client += "\x00vnf " + vnf
	op, err := m.acceptor.Accept(ctx, key, prepare)
	if errors.Is(err, errChecked) {
		return nf.Occurrence{}, nil
	}
	if err != nil {
		return nf.Occurrence{}, err
	}
	r, err := m.occurrences.Get(ctx, op.VNF.Occurrence)
	return r.Occurrence, err
}

// withdraw deletes the occurrence of a request that was not accepted.
func (m *Manager) withdraw(ctx context.Context, op nf.Operation) error {
	return m.occurrences.DeleteWhere(ctx, op.VNF.Occurrence, func(r record) bool { return len(r.Attempts) == 1 && r.Attempts[0] == op.ID })
}

// unused returns the error of idle, and nf.Busy while another operation runs on the
// instance of a VNF.
func (m *Manager) unused(ctx context.Context, verb string, v nf.VNF) error {
	if err := m.idle(ctx, verb, v); err != nil {
		return err
	}
	in, err := m.cfg.engineOf(v).Instances.Instance(ctx, v.ID)
	if err != nil || in.Operation == "" {
		return nf.IgnoreNotFound(err)
	}
	return &nf.Error{Kind: nf.Busy, Op: verb, Subject: "VNF " + v.ID, Operation: in.Operation, Err: fmt.Errorf("operation %s is running on its instance", in.Operation)}
}

// instantiated returns nf.Conflict unless a VNF is instantiated, and nf.Unsupported if it
// cannot have the operation.
func instantiated(verb nf.Verb, v nf.VNF) error {
	if v.Instantiated != nil {
		return v.Supports(verb)
	}
	return nf.E(nf.Conflict, string(verb), "VNF "+v.ID, errors.New("it is not instantiated"))
}

func invalid(verb nf.Verb, v nf.VNF, field, format string, args ...any) error {
	return nf.E(nf.Invalid, string(verb), "VNF "+v.ID, nf.Violations{{Field: field, Message: fmt.Sprintf(format, args...)}})
}

// cloned returns a VNF whose Instantiated can be edited.
func cloned(v nf.VNF) nf.VNF {
	if v.Instantiated != nil {
		in := *v.Instantiated
		in.Scale = maps.Clone(in.Scale)
		v.Instantiated = &in
	}
	return v
}

// merged returns values after a merge patch of RFC 7396; nil if there are none.
func merged(values, patch map[string]any) map[string]any {
	if patch == nil {
		return values
	}
	out, _ := nf.MergePatch(values, patch).(map[string]any)
	if len(out) == 0 {
		return nil
	}
	return out
}
