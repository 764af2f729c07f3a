package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// bound opens the instance's own namespace, which the project must be allowed to
// use, and those that its request and its package name.
func (e *Engine) bound(ctx context.Context, p *prepared, region nf.Region) error {
	tenancy := region.Tenancy(p.project, e.cfg.Apart)
	p.bounds = nf.Bounds{Namespace: p.namespace, Tenancy: tenancy}
	p.open(p.spec.Namespaces)
	p.open(p.pkg.Namespaces)
	p.window = &window{engine: e, cluster: p.cluster, tenancy: tenancy, sight: p.sight, usable: map[string]bool{}}
	return e.admit(ctx, p.cluster, tenancy, map[string]string{p.namespace: "namespace"})
}

// open opens further namespaces.
func (p *prepared) open(namespaces []string) {
	for _, name := range namespaces {
		if !p.bounds.Opens(name) {
			p.bounds.Further = append(p.bounds.Further, name)
		}
	}
}

// inspect holds what was prepared against its bounds and against the region.
func (e *Engine) inspect(ctx context.Context, p *prepared) error {
	// First who may use a namespace: what is in it is nobody else's business.
	fields := map[string]string{}
	for _, name := range namespacesOf(p.plan) {
		if slices.Contains(p.bounds.Further, name) {
			fields[name] = "namespaces"
		}
	}
	if err := e.admit(ctx, p.cluster, p.bounds.Tenancy, fields); err != nil {
		return err
	}
	return p.preflight(ctx)
}

// admit refuses namespaces that the project may not use. Of each, it takes the
// field of the request that names it.
func (e *Engine) admit(ctx context.Context, c Cluster, tenancy nf.Tenancy, fields map[string]string) error {
	if tenancy.Whole || len(fields) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(fields))
	live, err := c.Namespaces(ctx, names)
	if err != nil {
		return err
	}
	var denied nf.Violations
	for _, name := range names {
		var is *nf.Namespace
		if found, there := live[name]; there {
			is = &found
		}
		ok, err := e.mayUse(ctx, tenancy, name, is)
		if err != nil {
			return err
		}
		if !ok {
			denied = append(denied, tenancy.DeniedNamespace(fields[name], name))
		}
	}
	if len(denied) > 0 {
		return tenancy.Refuse(denied)
	}
	return nil
}

// mayUse reports whether a project may use a namespace. Live is nil when there is
// none.
func (e *Engine) mayUse(ctx context.Context, tenancy nf.Tenancy, name string, live *nf.Namespace) (bool, error) {
	if tenancy.MayUse(name, live) {
		return true, nil
	}
	if !live.Made || live.Project != "" {
		return false, nil
	}
	// It was made before projects were written down. It is the project's if all
	// instances in it are.
	found := false
	for id, err := range e.namespaces.Holds().Users(ctx, tenancyKey(tenancy.Region, name)) {
		if err != nil {
			return false, err
		}
		in, err := e.instances.Get(ctx, id)
		switch {
		case nf.KindOf(err) == nf.NotFound:
			continue
		case err != nil:
			return false, err
		case nf.ProjectOf(in.Project) != tenancy.Project:
			return false, nil
		}
		found = true
	}
	return found, nil
}

// namespacesOf returns the namespaces that the objects of a plan name, sorted.
func namespacesOf(plan render.Plan) []string {
	names := map[string]bool{}
	for _, obj := range withHooks(plan) {
		if name := obj.GetNamespace(); name != "" {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// further returns the namespaces of the run's plan besides the instance's own.
func (r *run) further() []string {
	return slices.DeleteFunc(namespacesOf(r.plan), func(name string) bool { return name == r.op.Namespace })
}

// tenancy returns what the operation's project may use of its region now.
func (r *run) tenancy(ctx context.Context) (nf.Tenancy, error) {
	region, err := r.cfg.Catalog.Region(ctx, r.op.Region)
	if err != nil {
		return nf.Tenancy{}, recordError(fmt.Errorf("cannot read what the project may use: %w", err))
	}
	return region.Tenancy(nf.ProjectOf(r.op.Project), r.cfg.Apart), nil
}
