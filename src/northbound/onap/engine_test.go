package onap_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
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
		ID: req.ID, Region: req.Region, Namespace: req.Namespace, State: nf.Instantiating, Revision: 1, Newest: 1,
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
	op.Cancel = true
	e.operations[id] = op
	if e.stops {
		e.end(id, &nf.Failure{Kind: nf.Cancelled, Message: "it was cancelled"}, nil)
	}
	return op, e.fail["Cancel"]
}

// search is a query for the objects of a region.
type search struct {
	region string
	query  onap.Query
}

// live stands in for the regions: every object of every instance is there.
type live struct {
	engine  *engine
	may     permit
	gone    map[string]bool  // names of objects that are not there
	more    []map[string]any // further objects
	served  func(kind string) bool
	refused map[string]error // by kind
	hooks   []onap.PlannedHook
	data    bool // a ConfigMap has what the chart of the transcripts gives it
	asked   []search
	err     error
	mu      sync.Mutex
}

var _ onap.Live = (*live)(nil)

func object(ref nf.Ref, owner string) map[string]any {
	labels := map[string]any{}
	if owner != "" {
		labels[nf.OwnerLabel] = owner
	}
	return map[string]any{
		"apiVersion": ref.APIVersion(), "kind": ref.Kind,
		"metadata": map[string]any{"name": ref.Name, "namespace": ref.Namespace, "labels": labels},
	}
}

func (l *live) object(in nf.Instance, ref nf.Ref) map[string]any {
	out := object(ref, in.ID)
	if ref.Kind != "ConfigMap" || !l.data {
		return out
	}
	data := map[string]any{"greeting": "good morning", "port": "80"}
	if greeting, ok := in.Inputs.Overrides["greeting"]; ok {
		data["greeting"] = greeting
	}
	for _, am := range in.Amendments {
		if rules, ok := am.Inputs.Parameters["rules"].(map[string]any); ok {
			data["port"] = rules["port"]
		}
	}
	out["data"] = data
	return out
}

func (l *live) Objects(_ context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error) {
	out := make([]map[string]any, len(refs))
	for i, ref := range refs {
		if !l.gone[ref.Name] && !l.gone[ref.Kind] {
			out[i] = l.object(in, ref)
		}
	}
	return out, l.err
}

// Find returns all objects to a caller that may register the region, and those of
// id1 to others.
func (l *live) Find(ctx context.Context, region string, q onap.Query) ([]map[string]any, error) {
	var denied error
	if l.may(ctx, nf.WriteRegion, nf.Scope{Region: region}) != nil {
		denied = l.may(ctx, nf.ReadRegion, nf.Scope{Region: region})
	}
	return l.seen(ctx, region, q, denied)
}

func (l *live) FindOf(ctx context.Context, in nf.Instance, q onap.Query) ([]map[string]any, error) {
	return l.seen(ctx, in.Region, q, nil)
}

func (l *live) seen(ctx context.Context, region string, q onap.Query, denied error) ([]map[string]any, error) {
	if denied != nil {
		return nil, denied
	}
	found, err := l.find(ctx, region, q)
	if l.may(ctx, nf.WriteRegion, nf.Scope{Region: region}) == nil {
		return found, err
	}
	return slices.DeleteFunc(found, func(o map[string]any) bool {
		return o["metadata"].(map[string]any)["labels"].(map[string]any)[nf.OwnerLabel] != "id1"
	}), err
}

func (l *live) find(ctx context.Context, region string, q onap.Query) ([]map[string]any, error) {
	l.mu.Lock()
	l.asked = append(l.asked, search{region, q})
	l.mu.Unlock()
	if l.served != nil && !l.served(q.Kind) {
		return nil, nf.E(nf.Unsupported, "list", q.Kind+" objects", nil)
	}
	if err := l.refused[q.Kind]; err != nil {
		return nil, err
	}
	var out []map[string]any
	instances, err := l.engine.Instances(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range instances {
		for _, it := range in.Inventory {
			if !it.Hook && it.Kind == q.Kind && it.APIVersion() == q.APIVersion && strings.Contains(q.Labels, nf.OwnerLabel+"="+in.ID) {
				out = append(out, l.object(in, it.Ref))
			}
		}
	}
	for _, o := range l.more {
		labels := o["metadata"].(map[string]any)["labels"].(map[string]any)
		owner, _ := labels[nf.OwnerLabel].(string)
		if o["kind"] == q.Kind && o["apiVersion"] == q.APIVersion && (!strings.Contains(q.Labels, nf.OwnerLabel) || strings.Contains(q.Labels, nf.OwnerLabel+"="+owner)) {
			out = append(out, o)
		}
	}
	return out, l.err
}

func (l *live) Hooks(context.Context, nf.Instance) ([]onap.PlannedHook, error) { return l.hooks, l.err }
