package networkservice_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/networkservice"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// world is a store with a simulated engine for VNF instances. An operation on an
// instance ends at once: it fails for the package "bad", and otherwise succeeds.
type world struct {
	kv store.KV

	mu        sync.Mutex
	instances map[string]nf.Instance
	children  map[string]nf.Operation
	keys      map[nf.RequestKey]string // operations by the key of their request
	journal   []string                 // what was done, in order
	held      map[string]bool          // operations that do not end before they are cancelled
	repaired  bool                     // the package "bad" works
}

var (
	_ networkservice.Instances = (*world)(nil)
	_ networkservice.Previews  = (*world)(nil)
	_ networkservice.Children  = (*world)(nil)
)

func newWorld() *world {
	return &world{
		kv: memory.New(), instances: map[string]nf.Instance{}, children: map[string]nf.Operation{}, keys: map[nf.RequestKey]string{}, held: map[string]bool{},
	}
}

// start runs a replica until the test ends or the returned function is called.
func (w *world) start(t *testing.T, edit ...func(*networkservice.Config, *operation.Config)) (s *networkservice.Services, stop func()) {
	t.Helper()
	cfg, work := networkservice.Config{KV: w.kv, Instances: w, Previews: w, Children: w}, operation.Config{KV: w.kv}
	for _, f := range edit {
		f(&cfg, &work)
	}
	work.NewID = rand.Text
	workers, err := operation.New(work)
	must(t, err)
	cfg.Workers = workers
	s, err = networkservice.New(cfg)
	must(t, err)
	return s, operationtest.Run(t, workers)
}

// Instance implements networkservice.Instances.
func (w *world) Instance(_ context.Context, id string) (nf.Instance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in, ok := w.instances[id]
	if !ok {
		return in, nf.E(nf.NotFound, "get", "VNF instance "+id, nil)
	}
	return in, nil
}

// do carries out a request, once for each key.
func (w *world) do(key nf.RequestKey, verb nf.Verb, id string, change func(op *nf.Operation) error) (nf.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if op, done := w.keys[key]; done && key.Key != "" {
		return w.children[op], nil
	}
	op := nf.Operation{ID: fmt.Sprintf("child-%d", len(w.children)+1), Subject: nf.Subject{Kind: nf.InstanceSubject, ID: id}, Verb: verb, State: nf.Succeeded, Request: key}
	if running := w.instances[id].Operation; running != "" {
		return nf.Operation{}, &nf.Error{Kind: nf.Busy, Op: string(verb), Subject: "VNF instance " + id, Operation: running}
	}
	if err := change(&op); err != nil {
		return nf.Operation{}, err
	}
	w.children[op.ID], w.keys[key] = op, op.ID
	w.journal = append(w.journal, fmt.Sprint(verb, " ", id, " ", op.State))
	return op, nil
}

func (w *world) broken(spec nf.Spec) bool { return spec.Package == "bad" && !w.repaired }

func failed(op *nf.Operation) {
	op.State, op.Failure = nf.OperationFailed, &nf.Failure{Kind: nf.Failed, Message: "a pod crashes"}
}

// Instantiate implements networkservice.Instances.
func (w *world) Instantiate(_ context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	return w.do(req.Key, nf.Instantiate, req.ID, func(op *nf.Operation) error {
		if _, there := w.instances[req.ID]; there {
			return nf.E(nf.Exists, "instantiate", "VNF instance "+req.ID, nil)
		}
		in := filled(nf.Instance{ID: req.ID, Region: req.Region, Namespace: req.Namespace, State: nf.Ready, Revision: 1}, req.Spec)
		if w.broken(req.Spec) {
			failed(op)
			if req.OnFailure == nf.Undo {
				return nil
			}
			in.State, in.Revision = nf.Broken, 0
		}
		if req.Spec.Package == "endless" {
			in.State, in.Revision, in.Operation, op.State = nf.Instantiating, 0, op.ID, nf.Running
			w.held[op.ID] = true
		}
		w.instances[req.ID] = in
		return nil
	})
}

// Upgrade implements networkservice.Instances. The way back from the package "fw2" deletes
// much.
func (w *world) Upgrade(_ context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	return w.do(req.Key, nf.Upgrade, id, func(op *nf.Operation) error {
		in, ok := w.instances[id]
		if !ok {
			return nf.E(nf.NotFound, "upgrade", "VNF instance "+id, nil)
		}
		var spec nf.Spec
		if err := req.Edit(&spec); err != nil {
			return err
		}
		switch {
		case in.Package == "fw2" && spec.Package == "fw" && req.Confirm != "digest":
			return &nf.Error{Kind: nf.Conflict, Op: "upgrade", Subject: "VNF instance " + id, Reason: nf.ReasonConfirm, Confirm: "digest"}
		case w.broken(spec) && req.OnFailure == nf.Undo:
			failed(op)
			return nil
		case w.broken(spec):
			failed(op)
			in.State = nf.Broken
		default:
			in.State = nf.Ready
		}
		w.instances[id] = filled(in, spec)
		return nil
	})
}

// Terminate implements networkservice.Instances.
func (w *world) Terminate(_ context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	return w.do(req.Key, nf.Terminate, id, func(*nf.Operation) error {
		if _, ok := w.instances[id]; !ok {
			return nf.E(nf.NotFound, "terminate", "VNF instance "+id, nil)
		}
		delete(w.instances, id)
		return nil
	})
}

// PreviewInstantiate implements networkservice.Previews. A placement chooses "west".
func (w *world) PreviewInstantiate(_ context.Context, req nf.InstantiateRequest) (nf.Preview, error) {
	if err := req.Validate(); err != nil {
		return nf.Preview{}, err
	}
	if req.Spec.Package == "missing" {
		return nf.Preview{}, nf.E(nf.NotFound, "use", "package", nf.Violations{{Field: "csar_id", Message: `"missing" does not exist`}})
	}
	if req.Placement != nil {
		return nf.Preview{Placed: &nf.Placed{Region: "west"}}, nil
	}
	return nf.Preview{}, nil
}

// PreviewUpgrade implements networkservice.Previews.
func (w *world) PreviewUpgrade(_ context.Context, _ string, req nf.UpgradeRequest) (nf.Preview, error) {
	var spec nf.Spec
	if err := req.Edit(&spec); err != nil {
		return nf.Preview{}, err
	}
	if spec.Package == "deletes" {
		return nf.Preview{Confirm: "digest"}, nil
	}
	return nf.Preview{}, spec.Validate()
}

// PreviewTerminate implements networkservice.Previews.
func (w *world) PreviewTerminate(ctx context.Context, id string, _ nf.TerminateRequest) (nf.Preview, error) {
	_, err := w.Instance(ctx, id)
	return nf.Preview{}, err
}

// Operation implements networkservice.Children.
func (w *world) Operation(_ context.Context, id string) (nf.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	op, ok := w.children[id]
	if !ok {
		return op, nf.E(nf.NotFound, "get", "operation "+id, nil)
	}
	return op, nil
}

// Wait implements networkservice.Children.
func (w *world) Wait(ctx context.Context, id string) (nf.Operation, error) {
	for {
		op, err := w.Operation(ctx, id)
		if err != nil || op.State.Final() {
			return op, err
		}
		select {
		case <-ctx.Done():
			return op, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// Cancel implements networkservice.Children. The cancelled operation is undone.
func (w *world) Cancel(_ context.Context, id string) (nf.Operation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	op := w.children[id]
	if op.State.Final() {
		return op, nf.E(nf.Conflict, "cancel", "operation "+id, errors.New("it has ended"))
	}
	op.State, op.Failure = nf.OperationCancelled, &nf.Failure{Kind: nf.Cancelled, Message: "it was cancelled"}
	w.children[id] = op
	delete(w.instances, op.Subject.ID)
	return op, nil
}

// done returns what was done to instances so far, and begins anew.
func (w *world) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.journal
	w.journal = nil
	return out
}

// running returns the instances as "id package".
func (w *world) running() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		out = append(out, id+" "+w.instances[id].Package)
	}
	return out
}

func filled(in nf.Instance, spec nf.Spec) nf.Instance {
	in.Package, in.Inputs, in.Labels, in.Networks = spec.Package, spec.Inputs, spec.Labels, spec.Networks
	return in
}

func member(name string, group int, pkg string) nf.ServiceMember {
	return nf.ServiceMember{Name: name, Group: group, Region: "east", Namespace: "ns", Spec: nf.Spec{Package: pkg}}
}

// request asks for a service of the members.
func request(members ...nf.ServiceMember) nf.ServiceRequest {
	return nf.ServiceRequest{Service: nf.NetworkService{ID: "vpn", Content: nf.ServiceContent{Members: members}}}
}

// replace returns the edit that replaces the members.
func replace(members ...nf.ServiceMember) func(*nf.NetworkService) error {
	return func(s *nf.NetworkService) error { s.Content.Members = members; return nil }
}

// end follows an operation to its end.
func end(t *testing.T, s *networkservice.Services, op nf.Operation) nf.Operation {
	t.Helper()
	for u, err := range s.Operations().Follow(t.Context(), op.Subject.ID, op.ID, 0) {
		must(t, err)
		if u.Operation != nil {
			op = *u.Operation
		}
	}
	if !op.State.Final() {
		t.Fatalf("operation %s was followed to %s", op.ID, op.State)
	}
	return op
}

// created creates the service of two groups, which succeeds.
func created(t *testing.T, s *networkservice.Services, members ...nf.ServiceMember) {
	t.Helper()
	op, err := s.Create(t.Context(), request(members...))
	must(t, err)
	if op = end(t, s, op); op.State != nf.Succeeded {
		t.Fatalf("the creation ended %s: %+v", op.State, op.Failure)
	}
}

func steps(op nf.Operation) string {
	var out []string
	for _, s := range op.Steps {
		out = append(out, s.Title())
	}
	return strings.Join(out, "; ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}
