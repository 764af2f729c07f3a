package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/site"
	"github.com/multicloud-k8s/k8splugin/src/site/ansible"
	"github.com/multicloud-k8s/k8splugin/src/site/script"
	"github.com/multicloud-k8s/k8splugin/src/site/shell"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

// siteKeeper makes what looks after sites. Without a collection of playbooks it
// has the script driver alone.
func (s *service) siteKeeper(cfg Config, db *vault, see sight) (*site.Sites, error) {
	runners := map[nf.SiteDriver]site.Runner{nf.SiteByScript: script.Runner{}}
	if cfg.Kud != "" {
		operators := map[string]any{}
		if cfg.KudArtifacts != "" {
			operators["kud_artifacts"] = cfg.KudArtifacts
		}
		runner, err := ansible.New(ansible.Config{Kud: cfg.Kud, Vars: operators, Logger: see.log})
		if err != nil {
			return nil, err
		}
		runners[nf.SiteByAnsible] = runner
	}
	return site.New(site.Config{
		KV: db, Regions: regions{s.catalog, s.pool}, Terminate: terminated(s.engine), Reach: shell.Reach, Runners: runners,
		Usable: shell.Usable, NewID: newID, Logger: see.log, Trace: see.tracing, Retention: cfg.Retention, Lease: cfg.Lease, Sole: db.db.sole,
		Finished: func(op nf.SiteOperation) { see.metrics.Finished(measured(op)) },
		Resumed:  func(op nf.SiteOperation) { see.metrics.Resumed(measured(op)) },
	})
}

// measured is an operation of a site as the metrics count operations: under a
// verb of its own, such as site_build, and no region: that of a site which could
// not be built was never registered, and its series would be forgotten at once.
func measured(op nf.SiteOperation) nf.Operation {
	return nf.Operation{
		ID: op.ID, Verb: op.Verb.Qualified(), State: op.State,
		Accepted: op.Accepted, Started: op.Started, Finished: op.Finished, Deadline: op.Deadline,
	}
}

// unfinished are the operations that have not ended, of instances and of sites.
func (s *service) unfinished() []nf.Operation {
	all := s.engine.Running()
	for _, op := range s.sites.Running() {
		all = append(all, measured(op))
	}
	return all
}

// terminated takes an instance down and waits until it is gone. What runs on it
// may be its own termination, which a former process has begun.
func terminated(engine *lifecycle.Engine) site.Terminate {
	return func(ctx context.Context, id string, waits func(operation string) error) error {
		for {
			op, err := engine.Terminate(ctx, id, nf.TerminateRequest{Options: nf.Options{Trace: telemetry.Traceparent(ctx)}})
			other := nf.OperationOf(err)
			switch {
			case err == nil:
				return succeeded(ctx, engine, op)
			case nf.KindOf(err) == nf.NotFound:
				return nil
			case nf.KindOf(err) != nf.Busy || other == "":
				return err
			}
			if err := waits(other); err != nil {
				return err
			}
			if _, err := last(ctx, engine, other); err != nil {
				return fmt.Errorf("cannot terminate VNF instance %s: %w", id, err)
			}
		}
	}
}

// succeeded waits for the end of an operation; the error is why it ended badly.
func succeeded(ctx context.Context, engine *lifecycle.Engine, op nf.Operation) error {
	ended, err := last(ctx, engine, op.ID)
	switch {
	case err != nil:
		return fmt.Errorf("cannot %s VNF instance %s: %w", op.Verb, op.Instance, err)
	case ended.State == nf.Succeeded:
		return nil
	case ended.Failure != nil:
		return nf.E(ended.Failure.Kind, string(op.Verb), "VNF instance "+op.Instance, errors.New(ended.Failure.Message))
	}
	return nf.E(nf.Failed, string(op.Verb), "VNF instance "+op.Instance, fmt.Errorf("operation %s is %s", op.ID, ended.State))
}

// last follows an operation to its end, and returns how it is then.
func last(ctx context.Context, engine *lifecycle.Engine, id string) (nf.Operation, error) {
	var op nf.Operation
	for latest, err := range engine.Follow(ctx, id) {
		if err != nil {
			return op, err
		}
		op = latest
	}
	switch {
	case op.State.Final():
		return op, nil
	case ctx.Err() != nil:
		return op, context.Cause(ctx)
	}
	return op, fmt.Errorf("cannot follow operation %s to its end: the service is shutting down", id)
}

// guardedSites are the sites as the identity in the context may see and change
// them. A site is its region's: to change it takes region:write there.
type guardedSites struct {
	guard   *access.Guard
	engine  *lifecycle.Engine
	regions regions
	keeper  *site.Sites
}

var (
	_ native.Sites          = guardedSites{}
	_ native.SiteOperations = guardedSites{}
)

// siteScope is where a site is: like a region, it belongs to no project, whatever
// project it is for.
func siteScope(region string) nf.Scope { return nf.Scope{Region: region} }

func absentSite(id string) error { return nf.E(nf.NotFound, "get", "site "+strconv.Quote(id), nil) }

// seen returns hidden when the identity may not read what is in the scope.
func (s guardedSites) seen(ctx context.Context, scope nf.Scope, hidden error) error {
	err := s.guard.May(ctx, nf.ReadRegion, scope)
	if nf.KindOf(err) == nf.Forbidden {
		nf.TrailOf(ctx).Hide()
		return hidden
	}
	return err
}

// writable returns a site that may be changed.
func (s guardedSites) writable(ctx context.Context, id string) (nf.Site, error) {
	in, err := s.Site(ctx, id)
	if err != nil {
		return in, err
	}
	return in, s.guard.May(ctx, nf.WriteRegion, siteScope(in.Region), id)
}

// CreateSite implements native.Sites. It takes region:write.
func (s guardedSites) CreateSite(ctx context.Context, req nf.SiteRequest) (nf.SiteOperation, error) {
	if err := s.guard.May(ctx, nf.WriteRegion, siteScope(req.Site.Region), req.Site.ID); err != nil {
		return nf.SiteOperation{}, err
	}
	op, err := s.keeper.Create(ctx, req)
	return begun(ctx, op, err)
}

// ChangeSite implements native.Sites. It takes region:write.
func (s guardedSites) ChangeSite(ctx context.Context, id string, req nf.SiteChangeRequest) (nf.SiteOperation, error) {
	if _, err := s.writable(ctx, id); err != nil {
		return nf.SiteOperation{}, err
	}
	op, err := s.keeper.Change(ctx, id, req)
	return begun(ctx, op, err)
}

// RemoveSite implements native.Sites. It takes region:write, and to take the VNF
// instances along instance:terminate for each.
func (s guardedSites) RemoveSite(ctx context.Context, id string, req nf.SiteRemoveRequest, cascade bool) (nf.SiteOperation, error) {
	in, err := s.writable(ctx, id)
	if err != nil {
		return nf.SiteOperation{}, err
	}
	if in.Registered && in.Busy == "" {
		if req.Instances, err = s.users(ctx, in, cascade); err != nil {
			return nf.SiteOperation{}, err
		}
	}
	op, err := s.keeper.Remove(ctx, id, req)
	return begun(ctx, op, err)
}

// users returns the instances that go with a site. Without cascade there may be
// none: the refusal names those that may be seen.
func (s guardedSites) users(ctx context.Context, in nf.Site, cascade bool) ([]string, error) {
	users, err := gathered(s.regions.Users(ctx, nf.Holding{Region: in.Region}))
	if err != nil || len(users) == 0 {
		return nil, err
	}
	shown, err := gathered(s.guard.Users(ctx, nf.Holding{Region: in.Region}))
	if err != nil {
		return nil, nf.UnlessGone(err)
	}
	if hidden := len(users) - len(shown); !cascade || hidden > 0 {
		var v nf.Violations
		for _, user := range shown {
			v = append(v, nf.Violation{Message: "its region is used by VNF instance " + user})
		}
		if hidden > 0 {
			v = append(v, nf.Violation{Message: fmt.Sprintf("its region is used by %d VNF instances that you may not see", hidden)})
		}
		return nil, nf.E(nf.Conflict, "remove", "site "+in.ID, v)
	}
	for _, user := range users {
		instance, err := s.engine.Instance(ctx, user)
		if nf.KindOf(err) == nf.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := s.guard.May(ctx, nf.RemoveInstance, nf.Scope{Project: nf.ProjectOf(instance.Project), Region: instance.Region}, in.ID, user); err != nil {
			return nil, err
		}
	}
	nf.TrailOf(ctx).Ask(nf.WriteRegion, siteScope(in.Region), in.ID)
	return users, nil
}

// gathered returns what a sequence yields.
func gathered(ids iter.Seq2[string, error]) ([]string, error) {
	var out []string
	for id, err := range ids {
		if err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}

// Site implements native.Sites. It takes region:read.
func (s guardedSites) Site(ctx context.Context, id string) (nf.Site, error) {
	in, err := s.keeper.Site(ctx, id)
	if nf.KindOf(err) == nf.NotFound {
		// Who may read nothing at all is told that, and not what there is.
		return nf.Site{}, errors.Join(s.seen(ctx, nf.Scope{}, nil), absentSite(id))
	}
	if err != nil {
		return nf.Site{}, err
	}
	if err := s.seen(ctx, siteScope(in.Region), absentSite(id)); err != nil {
		return nf.Site{}, err
	}
	return in, nil
}

// Sites implements native.Sites.
func (s guardedSites) Sites(ctx context.Context) ([]nf.Site, error) {
	all, err := s.keeper.Sites(ctx)
	if err != nil {
		return nil, err
	}
	return visible(ctx, s, all, func(in nf.Site) nf.Scope { return siteScope(in.Region) })
}

// SiteOperation implements native.SiteOperations. It takes region:read.
func (s guardedSites) SiteOperation(ctx context.Context, of, id string) (nf.SiteOperation, error) {
	absent := nf.E(nf.NotFound, "get", "operation "+strconv.Quote(id), nil)
	op, err := s.keeper.Operation(ctx, of, id)
	if nf.KindOf(err) == nf.NotFound {
		return op, absent
	}
	if err != nil {
		return op, err
	}
	if err := s.seen(ctx, siteScope(op.Region), absent); err != nil {
		return nf.SiteOperation{}, err
	}
	return op, nil
}

// SiteOperations implements native.SiteOperations.
func (s guardedSites) SiteOperations(ctx context.Context, of string) ([]nf.SiteOperation, error) {
	all, err := s.keeper.Operations(ctx, of)
	if err != nil {
		return nil, err
	}
	return visible(ctx, s, all, func(op nf.SiteOperation) nf.Scope { return siteScope(op.Region) })
}

// FollowSite implements native.SiteOperations. It takes region:read.
func (s guardedSites) FollowSite(ctx context.Context, of, id string, after int) iter.Seq2[nf.SiteUpdate, error] {
	return func(yield func(nf.SiteUpdate, error) bool) {
		if _, err := s.SiteOperation(ctx, of, id); err != nil {
			yield(nf.SiteUpdate{}, err)
			return
		}
		s.keeper.Follow(ctx, of, id, after)(yield)
	}
}

// CancelSite implements native.SiteOperations. It takes region:write.
func (s guardedSites) CancelSite(ctx context.Context, of, id string) (nf.SiteOperation, error) {
	op, err := s.SiteOperation(ctx, of, id)
	if err != nil {
		return op, err
	}
	if err := s.guard.May(ctx, nf.WriteRegion, siteScope(op.Region), of); err != nil {
		return nf.SiteOperation{}, err
	}
	return s.keeper.Cancel(ctx, of, id)
}

// begun notes the operation that a request began.
func begun(ctx context.Context, op nf.SiteOperation, err error) (nf.SiteOperation, error) {
	if err == nil {
		nf.TrailOf(ctx).Begin(op.ID)
	}
	return op, err
}

// visible returns the items that the identity may read.
func visible[T any](ctx context.Context, s guardedSites, all []T, scope func(T) nf.Scope) ([]T, error) {
	out := make([]T, 0, len(all))
	for _, item := range all {
		switch err := s.guard.May(ctx, nf.ReadRegion, scope(item)); nf.KindOf(err) {
		case nf.Forbidden:
			continue
		default:
			if err != nil {
				return nil, err
			}
		}
		out = append(out, item)
	}
	return out, nil
}
