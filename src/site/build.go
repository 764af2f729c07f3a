package site

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// buildSteps returns the steps that make the site match its record, and
// register its region.
func (r *run) buildSteps() []operation.Step {
	var dead []string
	var kubeconfig nf.Secret
	var steps []operation.Step
	if r.site.Machines != nil {
		steps = append(steps, r.step(nf.PhaseCreateMachines, r.createMachines))
	}
	steps = append(steps, r.step(nf.PhaseCheckHosts, func(ctx context.Context) (err error) {
		dead, err = r.check(ctx)
		return err
	}))
	if leaving := r.departingHosts(); len(leaving) > 0 {
		steps = append(steps, r.step(nf.PhaseRemoveWorkers, func(ctx context.Context) error {
			_, err := r.do(ctx, Job{Action: Shrink, Targets: leaving, Dead: dead})
			return err
		}))
	}
	if leaving := r.leavingMachines(); len(leaving) > 0 {
		steps = append(steps, r.step(nf.PhaseDeleteMachines, func(ctx context.Context) error { return r.deleteMachines(ctx, leaving...) }))
	}
	return append(steps,
		r.step(nf.PhaseBuild, func(ctx context.Context) (err error) {
			kubeconfig, err = r.do(ctx, Job{Action: Build})
			if err == nil && len(kubeconfig) == 0 {
				err = nf.E(nf.Failed, "build", "site "+r.site.ID, errors.New("the run did not write a kubeconfig"))
			}
			return err
		}),
		r.step(nf.PhaseRegister, func(ctx context.Context) error { return r.register(ctx, kubeconfig) }))
}

// removalSteps returns the steps that undo the steps of buildSteps, in reverse
// order.
func (r *run) removalSteps() []operation.Step {
	var steps []operation.Step
	if len(r.op().Site.Instances) > 0 {
		steps = append(steps, r.step(nf.PhaseTerminate, r.terminate))
	}
	scripted := r.site.Driver == nf.SiteByScript && len(r.secrets.RemoveScript) == 0
	steps = append(steps, r.step(nf.PhaseDeregister, func(ctx context.Context) error {
		err := r.deregister(ctx)
		switch {
		case err == nil && r.op().Site.KeepHosts:
			return r.releaseCloud(ctx)
		case err != nil || r.site.Machines != nil:
		case r.site.Untouched: // hosts are not checked: one that denies the credential may be why nothing was run
			return r.say(ctx, "", "nothing was ever run on its hosts; they remain unchanged")
		case scripted:
			r.attempt.Note(func(op *nf.Operation) {
				op.Warnings = []string{"the site has no removal script; the hosts remain unchanged"}
			})
		}
		return err
	}))
	if r.site.Machines != nil && !r.op().Site.KeepHosts {
		return append(steps, r.step(nf.PhaseDeleteMachines, func(ctx context.Context) error {
			if err := r.deleteMachines(ctx); err != nil {
				return err
			}
			return r.releaseCloud(ctx)
		}))
	}
	if r.op().Site.KeepHosts || r.site.Untouched || scripted {
		return steps
	}
	return append(steps,
		r.step(nf.PhaseCheckHosts, func(ctx context.Context) error {
			_, err := r.check(ctx)
			return err
		}),
		r.step(nf.PhaseResetHosts, func(ctx context.Context) error {
			_, err := r.do(ctx, Job{Action: Reset})
			return err
		}))
}

// departingHosts returns the names of the workers that are to be removed from the
// cluster. A machine without an address has never been part of it.
func (r *run) departingHosts() []string {
	var names []string
	for _, h := range r.site.Hosts {
		if h.State == nf.HostLeaving && h.Address != "" {
			names = append(names, h.Name)
		}
	}
	return names
}

// check connects to every host, and pins the keys of hosts that are seen for
// the first time. It returns the leaving hosts that cannot be reached, which is
// not an error: that may be why they leave.
func (r *run) check(ctx context.Context) (dead []string, err error) {
	keys := map[string]string{}
	for _, h := range reachable(r.site.Hosts) {
		key, err := r.probe(ctx, h)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil && h.State == nf.HostLeaving && r.op().Verb != nf.SiteRemove && slices.Contains([]string{nf.ReasonDNS, nf.ReasonTCP, nf.ReasonTimeout}, nf.ReasonOf(err)) {
			dead = append(dead, h.Name)
			err = r.say(ctx, h.Name, "the host is removed without a reset: %s", err)
		}
		if err != nil {
			return nil, err
		}
		if key != "" && h.Key == "" {
			keys[h.Name] = key
		}
		if err := r.say(ctx, h.Name, "connected"); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		return dead, nil
	}
	return dead, r.record(ctx, func(in *nf.Site) {
		in.Hosts = slices.Clone(in.Hosts)
		for i, h := range in.Hosts {
			if key := keys[h.Name]; key != "" {
				in.Hosts[i].Key = key
			}
		}
	})
}

// do runs a job, and returns the kubeconfig that it has produced.
func (r *run) do(ctx context.Context, job Job) (kubeconfig nf.Secret, err error) {
	if err := r.markChanged(ctx); err != nil {
		return nil, err
	}
	job.Site, job.Secrets = r.site, r.secrets
	job.Site.Hosts = reachable(r.site.Hosts)
	stop := r.journal.Periodically(ctx)
	defer stop()
	for e, err := range r.s.cfg.Runners[r.site.Driver].Run(ctx, job) {
		if err != nil {
			return nil, err
		}
		if len(e.Kubeconfig) > 0 {
			kubeconfig = e.Kubeconfig
			r.redactor.hideKubeconfig(kubeconfig)
		}
		r.redactor.hide(e.Hidden...)
		if e.Kind == "" {
			continue
		}
		if err := r.journal.Add(ctx, e.LogEntry); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return kubeconfig, nil
}

// markChanged records that the hosts may be changed from now on.
func (r *run) markChanged(ctx context.Context) error {
	if !r.site.Untouched {
		return nil
	}
	return r.record(ctx, func(in *nf.Site) { in.Untouched = false })
}

// registration returns the key under which the site's region is registered. It
// identifies a registration by an earlier attempt.
func (r *run) registration() nf.RequestKey {
	return nf.RequestKey{Client: "site:" + r.site.ID, Key: r.site.UID, Digest: "site"}
}

// register registers the region, or updates its kubeconfig.
func (r *run) register(ctx context.Context, kubeconfig nf.Secret) error {
	regions, key := r.s.cfg.Regions, r.registration()
	there, err := regions.Region(ctx, r.site.Region)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		_, err = regions.Register(ctx, nf.Region{
			ID: r.site.Region, Owner: r.site.Owner, Origin: nf.OriginSite, Description: r.site.Description, Labels: r.site.Labels,
			Access: nf.Access{Kubeconfig: kubeconfig}, Request: key,
		})
	case err != nil:
	case !key.Same(there.Request):
		err = nf.E(nf.Exists, "register", "cloud region "+r.site.Region, errors.New("another request has registered it in the meantime"))
	case !bytes.Equal(there.Access.Kubeconfig, kubeconfig):
		_, err = regions.UpdateRegion(ctx, r.site.Region, func(g *nf.Region) error {
			g.Access = nf.Access{Kubeconfig: kubeconfig}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return r.record(ctx, func(in *nf.Site) { in.Registered = true })
}

// deregister deregisters the region, if this site has registered it.
func (r *run) deregister(ctx context.Context) error {
	there, err := r.s.cfg.Regions.Region(ctx, r.site.Region)
	if err == nil && r.registration().Same(there.Request) {
		err = r.s.cfg.Regions.RemoveRegion(ctx, r.site.Region)
	}
	if nf.IgnoreNotFound(err) != nil {
		return err
	}
	return r.record(ctx, func(in *nf.Site) { in.Registered = false })
}
