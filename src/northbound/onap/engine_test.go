package onap_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

func noon(seconds int) time.Time { return time.Date(2026, 11, 20, 12, 0, seconds, 0, time.UTC) }

// engine stands in for the engine: it keeps instances and operations in memory,
// applies nothing, and ends an operation at once unless the test holds it.
type engine struct {
	mu         sync.Mutex
	instances  map[string]nf.Instance
	operations map[string]nf.Operation
	asked      []any            // the requests, in their order
	fail       map[string]error // what a method is refused with, by its name
	hold       bool             // operations stay as they are: see release
	failure    *nf.Failure      // what the next operations end with
	late       bool             // after everything is applied
	steps      []nf.Step        // of the next operations
	stops      bool             // an operation that is cancelled ends at once
	ill        bool             // nothing is as it should be
	sensitive  []string         // what packages say is secret
	made       int
	changed    chan struct{}
}

var (
	_ onap.Instances  = (*world)(nil)
	_ onap.Operations = (*engine)(nil)
)

func newEngine() *engine {
	return &engine{
		instances: map[string]nf.Instance{}, operations: map[string]nf.Operation{}, fail: map[string]error{}, changed: make(chan struct{}),
	}
}

// inventory is what every instance is in the stand-in's regions.
func inventory(namespace string) []nf.Item {
	return []nf.Item{
		{Ref: nf.Ref{Version: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "web"}},
		{Ref: nf.Ref{Group: "batch", Version: "v1", Kind: "Job", Namespace: namespace, Name: "hook"}, Hook: true},
		{Ref: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: namespace, Name: "web"}},
	}
}

// accept records an operation. Then says what it does to its instance when it
// succeeds; nil removes it.
func (e *engine) accept(in nf.Instance, verb nf.Verb, target nf.Revision, then func(*nf.Instance)) nf.Operation {
	e.made++
	op := nf.Operation{
		ID: "op-" + string(rune('a'+e.made-1)), Subject: nf.Subject{Kind: nf.InstanceSubject, ID: in.ID}, Region: in.Region, Instance: nf.InstanceTask{Namespace: in.Namespace, Target: target}, Verb: verb,
		State: nf.Running, Accepted: noon(e.made), Started: noon(e.made), Steps: e.steps,
	}
	if verb != nf.Terminate {
		op.Applied = noon(e.made)
	}
	in.Operation, in.LastOperation = op.ID, op.ID
	e.instances[in.ID], e.operations[op.ID] = in, op
	if !e.hold {
		e.end(op.ID, e.failure, then)
	}
	return e.operations[op.ID]
}

// end ends an operation.
func (e *engine) end(id string, failure *nf.Failure, then func(*nf.Instance)) {
	op := e.operations[id]
	op.State, op.Finished, op.Failure = nf.Succeeded, noon(50), failure
	in := e.instances[op.Subject.ID]
	in.Operation = ""
	switch {
	case failure != nil && e.late:
		op.State, in.State = nf.OperationFailed, nf.Broken
		e.instances[in.ID] = in
	case failure != nil:
		op.State, op.Applied = nf.OperationFailed, time.Time{}
		if op.Verb == nf.Instantiate {
			delete(e.instances, in.ID)
		} else {
			in.State = nf.Ready
			e.instances[in.ID] = in
		}
	case op.Verb == nf.Terminate:
		delete(e.instances, in.ID)
	default:
		in.State = nf.Ready
		if then != nil {
			then(&in)
		}
		e.instances[in.ID] = in
	}
	e.operations[id] = op
	close(e.changed)
	e.changed = make(chan struct{})
}

// release ends an operation that is held.
func (e *engine) release(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(id, nil, nil)
}

// edit changes what the stand-in holds.
func (e *engine) edit(f func(*engine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e)
}

func (e *engine) last() any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[len(e.asked)-1]
}

func (e *engine) free(method, id string) (nf.Instance, error) {
	in, ok := e.instances[id]
	switch {
	case !ok:
		return in, nf.E(nf.NotFound, "get", "VNF instance "+id, nil)
	case e.fail[method] != nil:
		return in, e.fail[method]
	case in.Operation != "":
		return in, &nf.Error{Kind: nf.Busy, Op: "change", Subject: "VNF instance " + id, Operation: in.Operation, Err: errors.New("operation " + in.Operation + " is running")}
	}
	return in, nil
}

func describe(in *nf.Instance, s nf.Spec) {
	in.Package, in.Inputs, in.Labels, in.Release = s.Package, s.Inputs, s.Labels, s.Release
	in.Amendments, in.Annotations = s.Amendments, s.Annotations
}

func (e *engine) Instantiate(_ context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, req)
	if err := cmpOr(e.fail["Instantiate"], req.Validate()); err != nil {
		return nf.Operation{}, err
	}
	if _, taken := e.instances[req.ID]; taken {
		return nf.Operation{}, nf.E(nf.Exists, "instantiate", "VNF instance "+req.ID, nil)
	}
	in := nf.Instance{
		ID: req.ID, Project: nf.ProjectOf(req.Project), Region: req.Region, Namespace: req.Namespace, State: nf.Instantiating, Revision: 1, Newest: 1,
		Inventory: inventory(req.Namespace), Created: noon(0),
	}
	describe(&in, req.Spec)
	in.Sensitive = e.sensitive
	return e.accept(in, nf.Instantiate, e.revision(1, req.Spec), nil), nil
}

func (e *engine) revision(number int, s nf.Spec) nf.Revision {
	return nf.Revision{Number: number, Sensitive: e.sensitive, Package: s.Package, Inputs: s.Inputs, Release: s.Release, Amendments: s.Amendments, Annotations: s.Annotations}
}

func (e *engine) change(method, id string, verb nf.Verb, edit func(*nf.Spec) error) (nf.Operation, error) {
	in, err := e.free(method, id)
	if err != nil {
		return nf.Operation{}, err
	}
	var spec nf.Spec
	for range 2 { // as it may be
		spec = nf.Spec{Package: in.Package, Inputs: in.Inputs, Labels: in.Labels, Release: in.Release, Amendments: in.Amendments, Annotations: in.Annotations}
		if err := edit(&spec); err != nil {
			return nf.Operation{}, err
		}
	}
	e.asked = append(e.asked, spec)
	in.State = nf.Updating
	return e.accept(in, verb, e.revision(in.Newest+1, spec), func(in *nf.Instance) { describe(in, spec); in.Sensitive = e.sensitive }), nil
}

func (e *engine) Upgrade(_ context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.change("Upgrade", id, nf.Upgrade, req.Edit)
}

func (e *engine) Configure(_ context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.change("Configure", id, nf.Configure, req.Edit)
}

func (e *engine) Test(_ context.Context, id string, req nf.TestRequest) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	in, err := e.free("Test", id)
	if err != nil {
		return nf.Operation{}, err
	}
	e.asked = append(e.asked, req)
	return e.accept(in, nf.Test, nf.Revision{}, nil), nil
}

func (e *engine) Terminate(_ context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	in, err := e.free("Terminate", id)
	if err != nil {
		return nf.Operation{}, err
	}
	e.asked = append(e.asked, req)
	in.State = nf.Terminating
	return e.accept(in, nf.Terminate, nf.Revision{}, nil), nil
}

func (e *engine) Instance(_ context.Context, id string) (nf.Instance, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	in, ok := e.instances[id]
	if !ok {
		return in, nf.E(nf.NotFound, "get", "VNF instance "+id, nil)
	}
	return in, e.fail["Instance"]
}

func (e *engine) Instances(context.Context) ([]nf.Instance, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []nf.Instance
	for _, id := range slices.Sorted(maps.Keys(e.instances)) {
		out = append(out, e.instances[id])
	}
	return out, e.fail["Instances"]
}

func (e *engine) Health(_ context.Context, id string) ([]nf.Health, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []nf.Health
	for _, it := range e.instances[id].Inventory {
		h := nf.Health{Ref: it.Ref, Status: nf.Current}
		if e.ill || it.Hook { // hooks are not queried
			h.Status = nf.InProgress
		}
		out = append(out, h)
	}
	return out, e.fail["Health"]
}

func (e *engine) Operation(_ context.Context, id string) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	op, ok := e.operations[id]
	if !ok {
		return op, nf.E(nf.NotFound, "get", "operation "+id, nil)
	}
	return op, nil
}

func (e *engine) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		for {
			e.mu.Lock()
			op, changed := e.operations[id], e.changed
			e.mu.Unlock()
			if !yield(op, nil) || op.State.Final() {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (e *engine) Cancel(_ context.Context, id string) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, "cancel "+id)
	op := e.operations[id]
	op.Cancel, op.Undoing = true, op.Verb == nf.Instantiate && op.Applied.IsZero()
	e.operations[id] = op
	close(e.changed)
	e.changed = make(chan struct{})
	if e.stops {
		e.end(id, &nf.Failure{Kind: nf.Cancelled, Message: "it was cancelled"}, nil)
	}
	return op, e.fail["Cancel"]
}
