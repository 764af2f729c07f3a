package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Configure accepts other amendments of an instance and returns its queued
// operation. What the instance's own package was rendered to stays as it is; the
// amendments are rendered anew, and no hooks run. It fails as Upgrade does, and
// with nf.Invalid when the request would change anything else.
func (e *Engine) Configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error) {
	return e.once(ctx, req.Key, func() (nf.Operation, error) { return e.configure(ctx, id, req) })
}

func (e *Engine) configure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Operation, error) {
	in, p, err := e.prepareConfigure(ctx, id, req)
	if err != nil {
		return nf.Operation{}, err
	}
	rev := p.revision(in.Newest + 1)
	rev.Sensitive = p.sensitive
	return e.change(ctx, in, p, revised{verb: nf.Configure, rev: rev, opts: req.Options})
}

func (e *Engine) prepareConfigure(ctx context.Context, id string, req nf.ConfigureRequest) (nf.Instance, *prepared, error) {
	in, err := e.instances.Get(ctx, id)
	if err != nil {
		return in, nil, err
	}
	if err := free("configure", in); err != nil {
		return in, nil, err
	}
	was := specOf(inForce(in))
	spec := was
	if err := req.Edit(&spec); err != nil {
		return in, nil, err
	}
	if err := onlyAmended(was, spec); err != nil {
		return in, nil, err
	}
	if err := errors.Join(spec.Validate(), req.Options.Validate()); err != nil {
		return in, nil, err
	}
	plan, rev, err := e.planInForce(ctx, in)
	if err != nil {
		return in, nil, err
	}
	region, err := e.cfg.Catalog.Region(ctx, in.Region)
	if err != nil {
		return in, nil, err
	}
	p := &prepared{
		target: targetOf(in, spec), pkg: nf.Package{ID: rev.Package, Digest: rev.PackageDigest},
		plan: plan.Unamended(), sensitive: rev.Sensitive,
	}
	if p.cluster, err = e.cfg.Open(ctx, p.region, p.project); err != nil {
		return in, nil, err
	}
	if err := e.bound(ctx, p, region); err != nil {
		return in, nil, err
	}
	p.open(namespacesOf(p.plan)) // they were opened when it was made
	p.hidden = rev.Hidden
	return in, p, e.complete(ctx, p, region)
}

// onlyAmended refuses a spec that differs in more than its amendments.
func onlyAmended(was, is nf.Spec) error {
	was.Amendments, was.Annotations = is.Amendments, is.Annotations
	if reflect.DeepEqual(was, is) {
		return nil
	}
	return nf.E(nf.Invalid, "configure", "specification", errors.New("a configuration changes amendments and nothing else"))
}

// amend renders the amendments and lays them over the plan.
func (e *Engine) amend(ctx context.Context, p *prepared, region nf.Region) error {
	for _, a := range p.spec.Amendments {
		pkg, files, err := e.cfg.Catalog.Files(ctx, a.Package)
		if err != nil {
			return missing("amendments."+a.Name, a.Package, err)
		}
		p.open(pkg.Namespaces)
		plan, err := e.render(ctx, p, content{pkg, files, a.Inputs}, region)
		if err != nil {
			return fmt.Errorf("cannot amend with %q: %w", a.Name, err)
		}
		p.plan = p.plan.Amend(a.Name, plan)
	}
	return nil
}
