package site

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/lease"
)

// build makes the site what its record wants, and registers its region.
func (r *run) build(ctx context.Context) error {
	var dead []string
	if err := r.step(ctx, "check hosts", func(ctx context.Context) (err error) {
		dead, err = r.check(ctx)
		return err
	}); err != nil {
		return err
	}
	if leaving := r.leaving(); len(leaving) > 0 {
		job := Job{Action: Shrink, Targets: leaving, Dead: dead}
		if err := r.step(ctx, "remove workers", func(ctx context.Context) error {
			_, err := r.do(ctx, job)
			return err
		}); err != nil {
			return err
		}
	}
	var kubeconfig nf.Secret
	if err := r.step(ctx, "build cluster", func(ctx context.Context) (err error) {
		kubeconfig, err = r.do(ctx, Job{Action: Build})
		if err == nil && len(kubeconfig) == 0 {
			err = nf.E(nf.Failed, "build", "site "+r.site.ID, errors.New("the run has left no kubeconfig"))
		}
		return err
	}); err != nil {
		return err
	}
	return r.step(ctx, "register region", func(ctx context.Context) error { return r.register(ctx, kubeconfig) })
}

// remove takes everything back that build has made, in the opposite order.
func (r *run) remove(ctx context.Context) error {
	if len(r.op.Instances) > 0 {
		if err := r.step(ctx, "terminate VNF instances", r.terminate); err != nil {
			return err
		}
	}
	if err := r.step(ctx, "deregister region", r.deregister); err != nil {
		return err
	}
	if r.op.KeepHosts {
		return nil
	}
	if r.site.Untouched { // also when they do not let us in, which may be why
		return r.say(ctx, "", "nothing was ever run on its hosts: they stay as they are")
	}
	if r.site.Driver == nf.SiteByScript && len(r.secret.RemoveScript) == 0 {
		return r.write(ctx, func(op *nf.SiteOperation) {
			op.Warnings = []string{"the site has no script that removes it: the hosts stay as they are"}
		})
	}
	if err := r.step(ctx, "check hosts", func(ctx context.Context) error {
		_, err := r.check(ctx)
		return err
	}); err != nil {
		return err
	}
	return r.step(ctx, "reset hosts", func(ctx context.Context) error {
		_, err := r.do(ctx, Job{Action: Reset})
		return err
	})
}

// leaving returns the names of the workers that shall go.
func (r *run) leaving() []string {
	var names []string
	for _, h := range r.site.Hosts {
		if h.State == nf.HostLeaving {
			names = append(names, h.Name)
		}
	}
	return names
}

// check talks to every host, and pins the keys of those that are seen for the
// first time. It returns the hosts that are leaving and cannot be talked to:
// that is why hosts leave.
func (r *run) check(ctx context.Context) (dead []string, err error) {
	keys := map[string]string{}
	for _, h := range r.site.Hosts {
		key, err := r.s.cfg.Reach(ctx, h, r.secret)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil && h.State == nf.HostLeaving && r.op.Verb != nf.SiteRemove && slices.Contains([]string{"dns", "tcp", "timeout"}, nf.ReasonOf(err)) {
			dead = append(dead, h.Name)
			err = r.say(ctx, h.Name, "it leaves without being reset: "+err.Error())
		}
		if err != nil {
			return nil, err
		}
		if key != "" && h.Key == "" {
			keys[h.Name] = key
		}
		if err := r.say(ctx, h.Name, "was talked to"); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		return dead, nil
	}
	return dead, r.record(ctx, func(in *nf.Site) error {
		in.Hosts = slices.Clone(in.Hosts)
		for i, h := range in.Hosts {
			if key := keys[h.Name]; key != "" {
				in.Hosts[i].Key = key
			}
		}
		return nil
	})
}

// record changes the site's record; lease.ErrLost when the site is another
// operation's.
func (r *run) record(ctx context.Context, edit func(*nf.Site) error) error {
	in, err := r.s.sites.Update(ctx, r.site.ID, func(in *nf.Site) error {
		if in.Busy != r.op.ID {
			return lease.ErrLost
		}
		return edit(in)
	})
	switch {
	case errors.Is(err, lease.ErrLost):
		return err
	case err != nil:
		return unkeptError{err}
	}
	r.site = in
	return nil
}

// do has a job done, and returns the kubeconfig that it has left.
func (r *run) do(ctx context.Context, job Job) (kubeconfig nf.Secret, err error) {
	if err := r.touch(ctx); err != nil {
		return nil, err
	}
	job.Site, job.Material = r.site, r.secret
	stop := r.publishing(ctx)
	defer stop()
	for e, err := range r.s.cfg.Runners[r.site.Driver].Run(ctx, job) {
		if err != nil {
			return nil, err
		}
		if len(e.Kubeconfig) > 0 {
			kubeconfig = e.Kubeconfig
			r.mu.Lock()
			r.veil.hideKubeconfig(kubeconfig)
			r.mu.Unlock()
		}
		if e.Kind == "" {
			continue
		}
		if err := r.note(ctx, e.SiteEvent); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return kubeconfig, nil
}

// touch writes down that from now on the hosts may be other than they were.
func (r *run) touch(ctx context.Context) error {
	if !r.site.Untouched {
		return nil
	}
	return r.record(ctx, func(in *nf.Site) error {
		in.Untouched = false
		return nil
	})
}

// registration is the key under which the site's region is registered: it tells
// our own, of a former attempt, from everybody else's.
func (r *run) registration() nf.RequestKey {
	return nf.RequestKey{Client: "site:" + r.site.ID, Key: r.site.UID, Digest: "site"}
}

// register registers the region, or gives it the kubeconfig of this run.
func (r *run) register(ctx context.Context, kubeconfig nf.Secret) error {
	regions, key := r.s.cfg.Regions, r.registration()
	there, err := regions.Region(ctx, r.site.Region)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		_, err = regions.Register(ctx, nf.Region{
			ID: r.site.Region, Owner: r.site.Owner, Description: r.site.Description, Labels: r.site.Labels,
			Kubeconfig: kubeconfig, Request: key,
		})
	case err != nil:
	case !key.Same(there.Request):
		err = nf.E(nf.Exists, "register", "cloud region "+r.site.Region, errors.New("somebody else has registered it meanwhile"))
	case !bytes.Equal(there.Kubeconfig, kubeconfig):
		_, err = regions.UpdateRegion(ctx, r.site.Region, func(g *nf.Region) error {
			g.Kubeconfig = kubeconfig
			return nil
		})
	}
	if err != nil {
		return err
	}
	return r.record(ctx, func(in *nf.Site) error {
		in.Registered = true
		return nil
	})
}

// terminate takes down the instances that may be.
func (r *run) terminate(ctx context.Context) error {
	for _, id := range r.op.Instances {
		if err := r.say(ctx, "", "VNF instance "+id+" is being terminated"); err != nil {
			return err
		}
		waits := func(operation string) error {
			return r.say(ctx, "", "operation "+operation+" is running on VNF instance "+id+": it is waited for")
		}
		if err := r.s.cfg.Terminate(ctx, id, waits); err != nil {
			return err
		}
	}
	return nil
}

// deregister takes the region away, if it is ours.
func (r *run) deregister(ctx context.Context) error {
	there, err := r.s.cfg.Regions.Region(ctx, r.site.Region)
	if err == nil && r.registration().Same(there.Request) {
		err = r.s.cfg.Regions.RemoveRegion(ctx, r.site.Region)
	}
	if nf.UnlessGone(err) != nil {
		return err
	}
	return r.record(ctx, func(in *nf.Site) error {
		in.Registered = false
		return nil
	})
}
