package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// hasCloud returns nf.Invalid if a site's machines cannot be made.
func (s *Sites) hasCloud(ctx context.Context, in nf.Site) error {
	if in.Machines == nil {
		return nil
	}
	if s.cfg.Clouds == nil {
		return nf.E(nf.Unsupported, "build", "site "+in.ID, errors.New("this service makes no machines"))
	}
	_, err := s.cloud(ctx, in)
	if nf.KindOf(err) == nf.NotFound {
		return nf.E(nf.Invalid, "build", "site "+in.ID, nf.Violations{{Field: "machines.cloud_region_id", Message: "does not exist"}})
	}
	return err
}

// cloud returns the cloud of a site's machines.
func (s *Sites) cloud(ctx context.Context, in nf.Site) (nf.OpenStack, error) {
	region, err := s.cfg.Regions.Region(ctx, in.Machines.Cloud)
	if err != nil {
		return nf.OpenStack{}, err
	}
	if region.Type != nf.OpenStackRegion || region.VIM == nil || region.VIM.OpenStack == nil {
		return nf.OpenStack{}, nf.E(nf.Invalid, "build", "site "+in.ID, nf.Violations{{Field: "machines.cloud_region_id", Message: "is not a region of the type openstack"}})
	}
	return *region.VIM.OpenStack, nil
}

// scale edits the number of workers of a site with machines. It adds workers with the
// first free names, and removes those that were added last.
func scale(in *nf.Site, req nf.SiteChangeRequest) nf.Violations {
	switch {
	case in.Machines == nil && req.Workers != nil:
		return nf.Violations{{Field: "machines", Message: "is not possible: the site's hosts are not machines that the service has created"}}
	case in.Machines != nil && len(req.Add) > 0:
		return nf.Violations{{Field: "add_hosts", Message: "is not possible: the service creates the site's hosts; use machines.workers"}}
	case req.Workers == nil:
		return nil
	}
	present := 0
	for _, h := range in.Hosts {
		if h.Role == nf.Worker && h.State != nf.HostLeaving {
			present++
		}
	}
	for ; present < *req.Workers; present++ {
		h := nf.WorkerMachine(in.Hosts, in.Hosts[0].User)
		h.State = nf.HostJoining
		in.Hosts = append(in.Hosts, h)
	}
	for i, h := range slices.Backward(in.Hosts) {
		if present > *req.Workers && h.Role == nf.Worker && h.State != nf.HostLeaving {
			in.Hosts[i].State = nf.HostLeaving
			present--
		}
	}
	return nil
}

// reachable returns the hosts that have an address. A machine has none until it runs.
func reachable(hosts []nf.SiteHost) []nf.SiteHost {
	return slices.DeleteFunc(slices.Clone(hosts), func(h nf.SiteHost) bool { return h.Address == "" })
}

// group returns the site's machines.
func (r *run) group() nf.MachineGroup {
	return nf.MachineGroup{Owner: r.site.UID, Name: r.site.ID, Spec: *r.site.Machines}
}

// holding returns the hold of the site on its cloud. Its machines could not be deleted
// without the region of the cloud.
func (r *run) holding() nf.Holding {
	return nf.Holding{Holder: nf.Holder{Subject: subjectOf(r.site.ID)}, Region: r.site.Machines.Cloud}
}

// useCloud returns the cloud of the site's machines. Its password is masked from now on.
func (r *run) useCloud(ctx context.Context) (nf.OpenStack, error) {
	cloud, err := r.s.cloud(ctx, r.site)
	r.redactor.hide(cloud.Password)
	return cloud, err
}

// createMachines creates the machines of the hosts that stay, waits until they run, and
// records their addresses. A worker whose machine is lost gets another one.
func (r *run) createMachines(ctx context.Context) error {
	cloud, err := r.useCloud(ctx)
	if err != nil {
		return err
	}
	if err := r.s.cfg.Holds.Hold(ctx, r.holding()); err != nil {
		return err
	}
	if err := r.claimed(ctx); err != nil {
		return err
	}
	there, err := r.s.cfg.Clouds.Machines(ctx, cloud, r.group())
	if err != nil {
		return err
	}
	wanted, failed, err := r.compare(there)
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		if err := r.say(ctx, "", "deleting machines that cannot run: %s", strings.Join(failed, ", ")); err != nil {
			return err
		}
		if err := r.claimed(ctx); err != nil {
			return err
		}
		if err := r.s.cfg.Clouds.Delete(ctx, cloud, r.group(), failed...); err != nil {
			return err
		}
	}
	if err := r.claimed(ctx); err != nil {
		return err
	}
	if err := r.s.cfg.Clouds.Create(ctx, cloud, r.group(), wanted); err != nil {
		return err
	}
	if err := r.claimed(ctx); err != nil {
		return err
	}
	running, err := r.s.cfg.Clouds.Await(ctx, cloud, r.group(), wanted)
	if err != nil {
		return err
	}
	return r.adopt(ctx, running)
}

// claimed returns operation.ErrTaken if another process has taken over the operation: a
// process that was stopped for long must not change the cloud any more.
func (r *run) claimed(ctx context.Context) error { return r.record(ctx, func(*nf.Site) {}) }

// compare returns the names of the hosts that stay, and of those among them whose
// machine has failed. A control plane that was part of the cluster cannot be replaced:
// the state of the cluster is lost with it.
func (r *run) compare(there []nf.Machine) (wanted, failed []string, err error) {
	for _, h := range r.site.Hosts {
		if h.State == nf.HostLeaving {
			continue
		}
		wanted = append(wanted, h.Name)
		at := slices.IndexFunc(there, func(m nf.Machine) bool { return m.Name == h.Name })
		broken := at >= 0 && there[at].State == nf.MachineFailed
		lost := broken || at < 0 || h.Machine != "" && there[at].ID != h.Machine
		if lost && h.Role == nf.ControlPlane && h.State == nf.HostPresent {
			return nil, nil, nf.E(nf.Failed, "repair", "host "+h.Name, fmt.Errorf("its machine %s no longer runs, and the cluster's state is lost with it; delete the site", h.Machine))
		}
		if broken {
			failed = append(failed, h.Name)
		}
	}
	return wanted, failed, nil
}

// adopt records the addresses of machines. The key of a host is that of its former
// machine if it has another one now.
func (r *run) adopt(ctx context.Context, running []nf.Machine) error {
	changed := false
	hosts := slices.Clone(r.site.Hosts)
	for _, m := range running {
		at := slices.IndexFunc(hosts, func(h nf.SiteHost) bool { return h.Name == m.Name })
		if at < 0 || hosts[at].Machine == m.ID && hosts[at].Address == m.Address {
			continue
		}
		if hosts[at].Machine != m.ID {
			hosts[at].Key, hosts[at].State = "", nf.HostJoining
		}
		hosts[at].Machine, hosts[at].Address, changed = m.ID, m.Address, true
		if err := r.say(ctx, m.Name, "machine %s runs at %s", m.ID, m.Address); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return r.record(ctx, func(in *nf.Site) { in.Hosts = hosts })
}

// leavingMachines returns the names of the machines that are to be deleted.
func (r *run) leavingMachines() []string {
	var names []string
	for _, h := range r.site.Hosts {
		if r.site.Machines != nil && h.State == nf.HostLeaving {
			names = append(names, h.Name)
		}
	}
	return names
}

// deleteMachines deletes machines; all without names. Without the region of the cloud
// there are none: the site holds it before it creates the first.
func (r *run) deleteMachines(ctx context.Context, names ...string) error {
	cloud, err := r.useCloud(ctx)
	if nf.KindOf(err) == nf.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return r.s.cfg.Clouds.Delete(ctx, cloud, r.group(), names...)
}

// releaseCloud ends the site's hold on its cloud.
func (r *run) releaseCloud(ctx context.Context) error {
	if r.site.Machines == nil {
		return nil
	}
	if err := r.claimed(ctx); err != nil {
		return err
	}
	return r.s.cfg.Holds.Release(ctx, r.holding())
}

// The times in which a new machine must accept a login.
const (
	bootTime  = 10 * time.Minute
	bootPause = 5 * time.Second
)

// probe connects to a host. A machine may run before it accepts connections, and
// before it has the user's key.
func (r *run) probe(ctx context.Context, h nf.SiteHost) (string, error) {
	begin := r.s.now()
	for {
		key, err := r.s.cfg.ProbeHost(ctx, h, r.secrets)
		booting := h.Machine != "" && h.State == nf.HostJoining && nf.KindOf(err) == nf.Unreachable && nf.ReasonOf(err) != nf.ReasonHostKey
		if err == nil || !booting || r.s.now().Sub(begin) >= bootTime {
			return key, err
		}
		if delay.For(ctx, bootPause, nil); ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
}
