package native_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/store"
	"github.com/multicloud-k8s/k8splugin/src/store/memory"
)

// standIn stands in for the catalog and the engine: it holds one object of each
// kind, fails where the test asks for it, and remembers what it was asked for.
type standIn struct {
	content

	mu    sync.Mutex
	asked any // the argument of the last call that changes something

	staged store.KV // content of requests
}

// content is what a stand-in holds.
type content struct {
	region   nf.Region
	pkg      nf.Package
	archive  string
	users    int  // instances that use the region and the package
	created  bool // what Upload says
	instance nf.Instance
	health   []nf.Health
	preview  nf.Preview
	changes  []nf.Change
	// operation is what is accepted; versions is what Follow yields. When the
	// last one is not final, Follow waits for the end of its context.
	operation    nf.Operation
	versions     []nf.Operation
	revisions    []nf.Revision
	state        nf.RegionState
	capabilities nf.RegionCapabilities
	entries      []nf.AuditEntry
	keys         nf.KeyStatus
	backup       string
	chart        string
	source       string // of the chart
	deadLetter   native.DeadLetter
	more         []string         // ids of further regions, packages, instances and operations
	fail         map[string]error // by name of the method
}

var (
	_ native.Regions    = (*standIn)(nil)
	_ native.Packages   = (*standIn)(nil)
	_ native.Instances  = (*standIn)(nil)
	_ native.Inspector  = (*standIn)(nil)
	_ native.History    = (*standIn)(nil)
	_ native.Operations = (*standIn)(nil)
	_ native.Repairs    = (*standIn)(nil)
	_ native.Conditions = (*standIn)(nil)
	_ native.Surveys    = (*standIn)(nil)
	_ native.Audit      = (*standIn)(nil)
	_ native.StoreAdmin = (*standIn)(nil)

	_ native.Configurer  = (*standIn)(nil)
	_ native.ChartSource = (*standIn)(nil)
	_ native.DeadLetters = (*standIn)(nil)
)

func noon(seconds int) time.Time { return time.Date(2026, 11, 20, 12, 0, seconds, 0, time.UTC) }

// newStandIn returns a stand-in in which everything goes well.
func newStandIn() *standIn {
	s := &standIn{staged: memory.New()}
	s.reset()
	return s
}

// reset makes the stand-in as good as new. Nothing may be using it.
func (s *standIn) reset() {
	s.ask(nil)
	op := nf.Operation{
		ID: "op-1", Subject: nf.Subject{Kind: nf.InstanceSubject, ID: "vnf-1"}, Region: "east", Instance: nf.InstanceTask{Namespace: "edge", Revision: 1}, Verb: nf.Instantiate, State: nf.Running,
		OnFailure: nf.Undo, Steps: []nf.Step{{StepID: nf.StepID{Phase: nf.PhaseApply, Stage: 1}, Of: 1, StageName: "all", Started: noon(1), Objects: 2, Current: 1}},
		Warnings: []string{"odd.yaml is not named"}, Accepted: noon(0), Started: noon(1), Deadline: noon(59),
	}
	s.content = content{
		region: nf.Region{
			ID: "east", Owner: "acme", Type: nf.KubernetesRegion, Origin: nf.OriginSite, DefaultNamespace: "edge", Description: "first", Labels: map[string]string{"site": "east"}, Access: nf.Access{Kubeconfig: nf.Secret("s3cret")},
			Probe:   nf.Probe{Server: "https://10.0.0.1:6443", Version: "v1.37.1", APIs: []string{"apps/v1", "v1"}, Time: noon(0)},
			Created: noon(0), Updated: noon(0),
		},
		pkg: nf.Package{
			ID: "firewall", Name: "firewall", Kind: "manifest", Digest: "sha256:abc", Size: 7, MediaType: "application/zip",
			Files: []string{"metadata.yaml"}, Created: noon(0), Updated: noon(0),
			Variables: []nf.Variable{{Name: "password", Type: "string", Default: "s3cret", Sensitive: true}, {Name: "replicas", Type: "integer", Default: 0.0}},
		},
		archive: "archive",
		created: true,
		instance: nf.Instance{
			ID: "vnf-1", Name: "fw-1", Region: "east", Namespace: "edge", Package: "firewall", State: nf.Ready, Revision: 1,
			Inputs: nf.Inputs{
				Parameters: map[string]any{"password": "s3cret", "replicas": 2.0},
				OOF:        []map[string]any{{"site": "a", "login": map[string]any{"password": "s3cret"}}},
				Network:    map[string]any{"oam": map[string]any{"ip_address": "10.0.0.7"}},
			},
			Sensitive: []string{"password"}, Labels: map[string]string{"tenant": "blue"}, LastOperation: "op-1",
			Inventory: []nf.Item{
				{Ref: nf.Ref{Version: "v1", Kind: "Service", Namespace: "edge", Name: "web"}},
				{Ref: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "edge", Name: "web"}},
			},
			Created: noon(0), Updated: noon(1),
		},
		health: []nf.Health{
			{Ref: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "edge", Name: "web"}, Status: nf.Current, Message: "2 of 2"},
			{Ref: nf.Ref{Version: "v1", Kind: "Service", Namespace: "edge", Name: "web"}, Status: nf.Current},
		},
		preview: nf.Preview{Changes: []nf.Change{{
			Ref: nf.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "edge", Name: "web"}, Action: nf.Configured,
			Fields: []nf.Field{{Path: "spec.replicas", Old: 0.0, New: 3.0}, {Path: "spec.paused", New: false}},
		}}, Manifests: []nf.Manifest{
			{Stage: "deployment", File: "web.yaml", Line: 1, Object: map[string]any{"kind": "Deployment"}},
			{File: "job.yaml", Line: 2, Events: []nf.HookEvent{nf.PreInstall}, Object: map[string]any{"kind": "Job"}},
		}},
		changes:   []nf.Change{{Ref: nf.Ref{Version: "v1", Kind: "Service", Namespace: "edge", Name: "web"}, Action: nf.Created}},
		operation: op,
		versions:  []nf.Operation{op, with(op, func(o *nf.Operation) { o.Applied = noon(2) })},
		revisions: []nf.Revision{
			{
				Instance: "vnf-1", Number: 1, Package: "firewall", PackageDigest: "sha256:abc", Plan: "sha256:plan", Operation: "op-1", Created: noon(0),
				Inputs: nf.Inputs{Parameters: map[string]any{"password": "s3cret", "replicas": 2.0}}, Sensitive: []string{"password"},
				Labels: map[string]string{"tenant": "blue"}, Description: "first",
			},
			{Instance: "vnf-1", Number: 2, Package: "firewall", PackageDigest: "sha256:abc", Plan: "sha256:plan", Operation: "op-2", Restores: 1, Created: noon(1)},
		},
		state: nf.RegionState{
			Condition: nf.RegionExpiring, Since: noon(0), Checked: noon(1), Breaker: nf.BreakerClosed,
			Credential: nf.Credential{Kind: "client-certificate", Expires: noon(59)},
		},
		entries: []nf.AuditEntry{
			{
				ID: "a-2", Phase: nf.AuditOutcome, Time: noon(3), Replica: "r-1", Request: "q-1", Kind: "user", Identity: "ann", Remote: "10.0.0.9",
				Method: "POST", Route: "/v1/vnf_instances", Permission: nf.CreateInstance, Project: "blue", Region: "east", Subjects: []string{"vnf-1"},
				Status: 201, Outcome: nf.AuditAccepted, Operation: "op-1", Digest: "sha256:abc", Missed: 2, Prev: "the entry before",
			},
			{ID: "a-2", Phase: nf.AuditIntent, Time: noon(2), Method: "POST", Route: "/v1/vnf_instances"},
			{ID: "a-1", Phase: nf.AuditRefusal, Time: noon(1), Method: "GET", Route: "/v1/keys", Status: 403, Outcome: "forbidden"},
		},
		keys:   nf.KeyStatus{Primary: "k2", Records: map[string]int{"k1": 3, "k2": 7}},
		backup: "everything",
		chart:  "chart",
		source: "oci://registry.example.com/charts/web:1.4.2",
		deadLetter: native.DeadLetter{
			ID: "5b1c-0000000007", Instance: "fox", Subscription: "so", Created: noon(1), Attempts: 20, Due: noon(5), Died: noon(6),
			LastStatus: 500, LastError: "cannot post the letter: connection refused",
		},
		fail: map[string]error{},
	}
}

func with(op nf.Operation, edit func(*nf.Operation)) nf.Operation {
	edit(&op)
	return op
}

func finished(op nf.Operation, state nf.OperationState, f *nf.Failure) nf.Operation {
	return with(op, func(o *nf.Operation) { o.State, o.Failure, o.Finished = state, f, noon(3) })
}

func (s *standIn) ask(what any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = what
}

// copies returns the one object and copies of it with the further ids.
func copies[T any](s *standIn, one T, name func(*T, string)) []T {
	out := []T{one}
	for _, id := range s.more {
		other := one
		name(&other, id)
		out = append(out, other)
	}
	return out
}

// from yields the items after a cursor, or a failure.
func from[T any](c nf.Cursor, all []T, id func(T) string, failure error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if failure != nil {
			yield(*new(T), failure)
			return
		}
		for _, item := range all {
			if id(item) > c.After && !yield(item, nil) {
				return
			}
		}
	}
}

func missing(noun, id string) error { return nf.E(nf.NotFound, "get", noun+" "+id, nil) }

func (s *standIn) Instantiate(_ context.Context, req nf.InstantiateRequest) (nf.Operation, error) {
	s.ask(req)
	return s.operation, s.fail["Instantiate"]
}

// upgrade is what an upgrade was asked for: the spec that the edit makes of the
// instance's.
type upgrade struct {
	spec    nf.Spec
	options nf.Options
}

func (s *standIn) edited(req nf.UpgradeRequest) (upgrade, error) {
	var spec nf.Spec
	for range 2 {
		in := s.instance
		spec = nf.Spec{
			Package: in.Package, Inputs: in.Inputs, Labels: in.Labels, Description: in.Description,
			Release: in.Release, Amendments: in.Amendments, Annotations: in.Annotations,
		}
		if err := req.Edit(&spec); err != nil {
			return upgrade{}, err
		}
	}
	return upgrade{spec, req.Options}, spec.Validate()
}

func (s *standIn) Upgrade(ctx context.Context, id string, req nf.UpgradeRequest) (nf.Operation, error) {
	if _, err := s.Instance(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	up, err := s.edited(req)
	if err != nil {
		return nf.Operation{}, err
	}
	s.ask(up)
	return s.operation, s.fail["Upgrade"]
}

func (s *standIn) Terminate(ctx context.Context, id string, req nf.TerminateRequest) (nf.Operation, error) {
	if _, err := s.Instance(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	s.ask(req)
	return s.operation, s.fail["Terminate"]
}

func (s *standIn) Revisions(context.Context, string) ([]nf.Revision, error) {
	return s.revisions, s.fail["Revisions"]
}

func (s *standIn) Revision(_ context.Context, id string, number int) (nf.Revision, error) {
	if number > len(s.revisions) {
		return nf.Revision{}, missing("revision", fmt.Sprintf("%d of VNF instance %s", number, id))
	}
	return s.revisions[number-1], s.fail["Revision"]
}

func (s *standIn) Rollback(ctx context.Context, id string, req nf.RollbackRequest) (nf.Operation, error) {
	if _, err := s.Instance(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	s.ask(req)
	return s.operation, s.fail["Rollback"]
}

func (s *standIn) PreviewRollback(_ context.Context, _ string, req nf.RollbackRequest) (nf.Preview, error) {
	s.ask(req)
	return s.preview, s.fail["PreviewRollback"]
}

// repair is what a repair was asked for.
type repair struct {
	verb, operation string
	options         nf.Options
}

func (s *standIn) Retry(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	if _, err := s.Operation(ctx, operation); err != nil {
		return nf.Operation{}, err
	}
	s.ask(repair{"retry", operation, opts})
	return s.operation, s.fail["Retry"]
}

func (s *standIn) Undo(ctx context.Context, operation string, opts nf.Options) (nf.Operation, error) {
	if _, err := s.Operation(ctx, operation); err != nil {
		return nf.Operation{}, err
	}
	s.ask(repair{"undo", operation, opts})
	return s.operation, s.fail["Undo"]
}

func (s *standIn) Instance(_ context.Context, id string) (nf.Instance, error) {
	if id != s.instance.ID {
		return nf.Instance{}, missing("VNF instance", id)
	}
	return s.instance, s.fail["Instance"]
}

func (s *standIn) InstancesFrom(_ context.Context, region string, c nf.Cursor) iter.Seq2[nf.Instance, error] {
	all := copies(s, s.instance, func(in *nf.Instance, id string) { in.ID = id })
	all = slices.DeleteFunc(all, func(in nf.Instance) bool { return region != "" && in.Region != region })
	return from(c, all, func(in nf.Instance) string { return in.ID }, s.fail["Instances"])
}

func (s *standIn) Health(context.Context, string) ([]nf.Health, error) {
	return s.health, s.fail["Health"]
}

func (s *standIn) InstanceHealth(in nf.Instance) nf.InstanceHealth {
	return nf.Assess(in.State, s.health)
}

func (s *standIn) Operation(_ context.Context, id string) (nf.Operation, error) {
	if id != s.operation.ID {
		return nf.Operation{}, missing("operation", id)
	}
	return s.operation, s.fail["Operation"]
}

func (s *standIn) OperationsFrom(_ context.Context, instance string, c nf.Cursor) iter.Seq2[nf.Operation, error] {
	var all []nf.Operation
	if instance == "" || instance == s.operation.Subject.ID {
		all = copies(s, s.operation, func(op *nf.Operation, id string) { op.ID = id })
	}
	return from(c, all, operationID, s.fail["Operations"])
}

func operationID(op nf.Operation) string { return op.ID }

func (s *standIn) Changes(context.Context, string) ([]nf.Change, error) {
	return s.changes, s.fail["Changes"]
}

func (s *standIn) Follow(ctx context.Context, id string) iter.Seq2[nf.Operation, error] {
	return func(yield func(nf.Operation, error) bool) {
		if _, err := s.Operation(ctx, id); err != nil {
			yield(nf.Operation{}, err)
			return
		}
		for _, op := range s.versions {
			if !yield(op, nil) || op.State.Final() {
				return
			}
		}
		if err := s.fail["Follow"]; err != nil {
			yield(nf.Operation{}, err)
			return
		}
		<-ctx.Done()
	}
}

func (s *standIn) Cancel(ctx context.Context, id string) (nf.Operation, error) {
	if _, err := s.Operation(ctx, id); err != nil {
		return nf.Operation{}, err
	}
	op := s.operation
	op.Cancel = true
	return op, s.fail["Cancel"]
}

// Users implements native.Usage.
func (s *standIn) Users(_ context.Context, of nf.Holding) iter.Seq2[nf.Subject, error] {
	return func(yield func(nf.Subject, error) bool) {
		users := []string{}
		if of.Region == "east" {
			users = append(users, "vnf-1")
		}
		for i := range s.users {
			users = append(users, fmt.Sprintf("vnf-more-%03d", i))
		}
		for _, id := range users {
			if !yield(nf.Subject{Kind: nf.InstanceSubject, ID: id}, nil) {
				return
			}
		}
	}
}
