package sol003_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// engine simulates the engine. It refuses what the engine refuses: a second operation on
// an instance, an id that exists, the retry of an operation that has not failed. An
// operation takes ten seconds. The simulator counts its operations by verb.
type engine struct {
	mu        sync.Mutex
	instances map[string]*nf.Instance
	pods      map[string][]nf.Pod
	revisions map[string][]nf.Spec
	ops       []*nf.Operation
	specs     map[string]nf.Spec // of operations
	evicted   map[string][]string
	effects   map[string]func()

	failures map[nf.Verb]int   // operations of the verb that fail
	refusals map[nf.Verb]error // of requests
	unread   error             // of pods
	takes    time.Duration
	grace    *time.Duration // of the last termination
	stateful bool           // pods are replaced under their names
	workload nf.Ref         // of an instance
	guard    string         // confirms that a change deletes objects; empty: none needs that
	serial   int
}

func newEngine() *engine {
	return &engine{
		instances: map[string]*nf.Instance{}, pods: map[string][]nf.Pod{}, revisions: map[string][]nf.Spec{}, specs: map[string]nf.Spec{},
		evicted: map[string][]string{}, effects: map[string]func(){}, failures: map[nf.Verb]int{}, refusals: map[nf.Verb]error{}, takes: 10 * time.Second,
		workload: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "default", Name: "web"},
	}
}

// in returns the ids of the instances in a region, ordered.
func (e *engine) in(region string) (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, in := range e.instances {
		if in.Region == region {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// accept accepts an operation on an instance, unless it was accepted under its key before.
func (e *engine) accept(id string, verb nf.Verb, opts nf.Options, prepare func() (effect func(), err error)) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress()
	for _, op := range e.ops {
		if op.Request.Same(opts.Key) {
			return *op, nil
		}
	}
	if err := e.refusals[verb]; err != nil {
		return nf.Operation{}, err
	}
	if in := e.instances[id]; in != nil && in.Operation != "" {
		return nf.Operation{}, &nf.Error{Kind: nf.Busy, Op: string(verb), Subject: "VNF instance " + id, Operation: in.Operation}
	}
	effect, err := prepare()
	if err != nil {
		return nf.Operation{}, err
	}
	op := &nf.Operation{
		ID: fmt.Sprintf("engine-%02d", len(e.ops)), Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}, Verb: verb, State: nf.Running, Request: opts.Key,
		OnFailure: opts.OnFailure, Accepted: time.Now(), Deadline: time.Now().Add(e.takes),
	}
	if e.failures[verb] > 0 {
		e.failures[verb]--
		op.Failure = nf.FailureOf("apply", nf.E(nf.Failed, "apply", "Deployment web", errors.New("its image cannot be pulled")))
	}
	e.ops, e.effects[op.ID] = append(e.ops, op), effect
	in := e.instances[id]
	in.Operation, in.LastOperation = op.ID, op.ID
	return *op, nil
}

// progress ends the operations whose time has passed.
func (e *engine) progress() {
	for _, op := range e.ops {
		if op.State.Final() || time.Now().Before(op.Deadline) {
			continue
		}
		in := e.instances[op.Subject.ID]
		in.Operation = ""
		if op.Failure != nil {
			op.State = nf.OperationFailed
			if op.Failure.Kind == nf.Cancelled {
				op.State = nf.OperationCancelled
			}
			if op.Verb != nf.Heal {
				in.State = nf.Broken
			}
			continue
		}
		op.State, in.State = nf.Succeeded, nf.Ready
		e.effects[op.ID]()
	}
}

// populate makes an instance run the pods of its workloads. Those that are too many are being
// deleted from then on.
func (e *engine) populate(id, workload string, want int) {
	pods := e.pods[id]
	have := 0
	for _, p := range pods {
		if p.Workload.Name == workload && p.Status != nf.StatusDeleting {
			have++
		}
	}
	for ; have < want; have++ {
		e.serial++
		ref := nf.Ref{Version: "v1", Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("%s-%02d", workload, e.serial)}
		pods = append(pods, nf.Pod{Health: nf.Health{Ref: ref, UID: ref.Name}, Phase: "Running", Workload: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "default", Name: workload}})
	}
	for i := len(pods) - 1; i >= 0 && have > want; i-- {
		if pods[i].Workload.Name == workload && pods[i].Status != nf.StatusDeleting {
			pods[i].Status = nf.StatusDeleting
			have--
		}
	}
	e.pods[id] = pods
}

func (e *engine) activate(id string, spec nf.Spec) {
	e.revisions[id] = append(e.revisions[id], spec)
	in := e.instances[id]
	in.Revision, in.Package, in.Networks, in.Inputs = len(e.revisions[id]), spec.Package, spec.Networks, spec.Inputs
	if e.stateful {
		for i := range e.pods[id] {
			e.pods[id][i].UID += "+"
		}
	}
	e.populate(id, "web", max(1, e.count(id)))
}

// guarded returns the error of a change that deletes objects and is not confirmed.
func (e *engine) guarded(opts nf.Options) error {
	if e.guard == "" || opts.Confirm == e.guard {
		return nil
	}
	return &nf.Error{Kind: nf.Conflict, Op: "upgrade", Subject: "it", Reason: nf.ReasonConfirm, Confirm: e.guard, Err: errors.New("ConfigMap old would be deleted")}
}

// count returns the number of pods of the workload.
func (e *engine) count(id string) (n int) {
	for _, p := range e.pods[id] {
		if p.Workload.Name == "web" {
			n++
		}
	}
	return n
}

func (e *engine) Instantiate(_ context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	return e.accept(req.ID, nf.Instantiate, req.Options, func() (func(), error) {
		if e.instances[req.ID] != nil {
			return nil, nf.E(nf.Exists, "instantiate", "VNF instance "+req.ID, nil)
		}
		item := nf.Item{}
		item.Ref = e.workload
		e.instances[req.ID] = &nf.Instance{ID: req.ID, Region: req.Region, Namespace: req.Namespace, Project: req.Project, State: nf.Instantiating, Inventory: []nf.Item{item}}
		return func() { e.activate(req.ID, req.Spec) }, nil
	})
}

func (e *engine) Upgrade(_ context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	return e.accept(id, nf.Upgrade, req.Options, func() (func(), error) {
		if err := e.guarded(req.Options); err != nil {
			return nil, err
		}
		in := e.instances[id]
		spec := nf.Spec{Package: in.Package, Networks: in.Networks, Inputs: in.Inputs}
		if err := req.Edit(&spec); err != nil {
			return nil, err
		}
		return func() { e.activate(id, spec) }, nil
	})
}

func (e *engine) Rollback(_ context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	return e.accept(id, nf.Rollback, req.Options, func() (func(), error) {
		if req.Revision < 1 || req.Revision > len(e.revisions[id]) {
			return nil, nf.E(nf.NotFound, "roll back", "VNF instance "+id, nil)
		}
		return func() {}, nil
	})
}

func (e *engine) Act(_ context.Context, id string, req nf.ActRequest) (nf.Operation, error) {
	if err := req.Validate(); err != nil {
		return nf.Operation{}, err
	}
	return e.accept(id, req.Verb, req.Options, func() (func(), error) {
		if e.instances[id].State != nf.Ready {
			return nil, nf.E(nf.Conflict, string(req.Verb), "VNF instance "+id, nil)
		}
		return func() {
			for _, s := range req.Scale {
				if !e.instances[id].Inventory[0].Names(s.Workload) {
					panic("the instance has no " + s.Workload)
				}
				e.populate(id, "web", e.count(id)+int(s.By))
			}
			for _, name := range req.Pods {
				n := e.count(id)
				e.pods[id] = slices.DeleteFunc(e.pods[id], func(p nf.Pod) bool { return p.Namespace+"/"+p.Name == name })
				e.populate(id, "web", n)
			}
		}, nil
	})
}

func (e *engine) Terminate(_ context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	return e.accept(id, nf.Terminate, req.Options, func() (func(), error) {
		if e.instances[id] == nil {
			return nil, nf.E(nf.NotFound, "terminate", "VNF instance "+id, nil)
		}
		e.instances[id].State = nf.Terminating
		e.grace = req.Grace
		return func() {
			delete(e.instances, id)
			delete(e.pods, id)
			delete(e.revisions, id)
		}, nil
	})
}

// failed returns a failed operation that was the last one of its instance, which is broken.
func (e *engine) failed(operation, verb string) (*nf.Operation, error) {
	at := slices.IndexFunc(e.ops, func(op *nf.Operation) bool { return op.ID == operation })
	if at < 0 {
		return nil, nf.E(nf.NotFound, verb, "operation "+operation, nil)
	}
	op := e.ops[at]
	in := e.instances[op.Subject.ID]
	if in == nil || in.LastOperation != operation || in.State != nf.Broken || op.State != nf.OperationFailed && op.State != nf.OperationCancelled || op.Verb == nf.Heal {
		return nil, nf.E(nf.Conflict, verb, "operation "+operation, nil)
	}
	return op, nil
}

func (e *engine) subject(operation string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, op := range e.ops {
		if op.ID == operation {
			return op.Subject.ID
		}
	}
	return ""
}

func (e *engine) verb(operation string) nf.Verb {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, op := range e.ops {
		if op.ID == operation {
			return op.Verb
		}
	}
	return ""
}

func (e *engine) Retry(_ context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	return e.accept(e.subject(operation), e.verb(operation), opts, func() (func(), error) {
		op, err := e.failed(operation, "retry")
		if err != nil {
			return nil, err
		}
		return e.effects[op.ID], nil
	})
}

func (e *engine) Undo(_ context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	verb, id := nf.Rollback, e.subject(operation)
	if e.verb(operation) == nf.Instantiate {
		verb = nf.Terminate
	}
	return e.accept(id, verb, opts, func() (func(), error) {
		if err := e.guarded(opts); err != nil {
			return nil, err
		}
		op, err := e.failed(operation, "undo")
		if err != nil {
			return nil, err
		}
		if op.Verb == nf.Terminate {
			return nil, nf.E(nf.Conflict, "undo", "operation "+operation, nil)
		}
		if verb == nf.Terminate {
			return func() { delete(e.instances, id); delete(e.pods, id) }, nil
		}
		return func() {}, nil
	})
}

func (e *engine) Cancel(_ context.Context, operation string) (nf.Operation, error) {
	return e.end("cancel", operation, 0)
}

// Stop ends an operation after its present step, which takes at most a minute.
func (e *engine) Stop(_ context.Context, operation string) (nf.Operation, error) {
	return e.end("stop", operation, time.Minute)
}

func (e *engine) end(call, operation string, step time.Duration) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress()
	for _, op := range e.ops {
		if op.ID != operation {
			continue
		}
		if op.State.Final() {
			return *op, nf.E(nf.Conflict, call, "operation "+operation, nil)
		}
		op.Failure = &nf.Failure{Kind: nf.Cancelled, Message: "it was cancelled"}
		if end := time.Now().Add(step); end.Before(op.Deadline) {
			op.Deadline = end
		}
		return *op, nil
	}
	return nf.Operation{}, nf.E(nf.NotFound, call, "operation "+operation, nil)
}

func (e *engine) Instance(_ context.Context, id string) (nf.Instance, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress()
	if in := e.instances[id]; in != nil {
		return *in, nil
	}
	return nf.Instance{}, nf.E(nf.NotFound, "get", "VNF instance "+id, nil)
}

func (e *engine) Operation(_ context.Context, id string) (nf.Operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress()
	for _, op := range e.ops {
		if op.ID == id {
			return *op, nil
		}
	}
	return nf.Operation{}, nf.E(nf.NotFound, "get", "operation "+id, nil)
}

func (e *engine) Wait(ctx context.Context, id string) (nf.Operation, error) {
	for {
		op, err := e.Operation(ctx, id)
		if err != nil || op.State.Final() {
			return op, err
		}
		if delay.For(ctx, time.Second, nil); ctx.Err() != nil {
			return op, context.Cause(ctx)
		}
	}
}

func (e *engine) Pods(_ context.Context, id string) ([]nf.Pod, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress()
	if e.unread != nil {
		return nil, e.unread
	}
	if e.instances[id] == nil {
		return nil, nf.E(nf.NotFound, "get", "VNF instance "+id, nil)
	}
	return slices.Clone(e.pods[id]), nil
}
