package site

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// Create accepts a new site, and returns the operation that builds it. It
// returns nf.Exists if the site's or the region's id is taken. If the same
// request was accepted before, it returns that operation.
func (s *Sites) Create(ctx context.Context, req nf.SiteRequest) (nf.Operation, error) {
	if req.Site.Region == "" {
		req.Site.Region = req.Site.ID
	}
	if err := req.Validate(); err != nil {
		return nf.Operation{}, err
	}
	subject := "site " + req.Site.ID
	if s.cfg.Runners[req.Site.Driver] == nil {
		return nf.Operation{}, nf.E(nf.Unsupported, "build", subject, fmt.Errorf("the driver %s is not available", req.Site.Driver))
	}
	if err := s.cfg.Usable(req.Secrets); err != nil {
		return nf.Operation{}, err
	}
	if err := s.hasCloud(ctx, req.Site); err != nil {
		return nf.Operation{}, err
	}
	op, err := s.accept(ctx, req.Site.ID, req.Key, func() (operation.Request, error) { return s.create(ctx, req) })
	if nf.KindOf(err) == nf.Exists && len(nf.ViolationsOf(err)) == 0 {
		err = taken("site "+req.Site.ID, "site_id")
	}
	return op, err
}

func (s *Sites) create(ctx context.Context, req nf.SiteRequest) (operation.Request, error) {
	if err := s.free(ctx, req.Site); err != nil {
		return operation.Request{}, err
	}
	now := s.now()
	in := req.Site
	in.UID, in.State, in.Request, in.Created, in.Updated = s.cfg.NewID(), nf.SiteBuilding, req.Key, now, now
	in.Registered, in.Untouched = false, true
	in.Secrets = slices.Sorted(maps.Keys(req.Secrets.Secrets))
	in.Hosts = slices.Clone(in.Hosts)
	for i := range in.Hosts {
		in.Hosts[i].State = nf.HostJoining
	}
	op := s.operation(in, nf.SiteBuild, req.Timeout, req.Trace)
	in.SecretsRecord = under(in.UID, op.ID)
	lockOf(&in).Take(op)
	return s.locking(op, &req.Secrets, func(ctx context.Context) (store.Op, error) { return s.locks.CreateOp(ctx, in) }), nil
}

// free returns nf.Exists if the id of the site or of its region is taken.
// Between two concurrent requests, the registration of the region decides.
func (s *Sites) free(ctx context.Context, wanted nf.Site) error {
	subject := "site " + wanted.ID
	for there, err := range s.sites.All(ctx, "") {
		switch {
		case err != nil:
			return err
		case there.ID == wanted.ID:
			return taken(subject, "site_id")
		case there.Region == wanted.Region:
			return taken(subject, "cloud_region_id")
		}
	}
	_, err := s.cfg.Regions.Region(ctx, wanted.Region)
	if err == nil {
		return taken(subject, "cloud_region_id")
	}
	return nf.IgnoreNotFound(err)
}

func taken(subject, field string) error {
	return nf.E(nf.Exists, "build", subject, nf.Violations{{Field: field, Message: "already exists"}})
}

// Change accepts a change of a site. It returns nf.Busy while another operation
// of the site runs. A request without changes runs everything again.
func (s *Sites) Change(ctx context.Context, id string, req nf.SiteChangeRequest) (nf.Operation, error) {
	return s.accept(ctx, id, req.Key, func() (operation.Request, error) { return s.change(ctx, id, req) })
}

func (s *Sites) change(ctx context.Context, id string, req nf.SiteChangeRequest) (operation.Request, error) {
	before, err := s.sites.Get(ctx, id)
	if err != nil {
		return operation.Request{}, err
	}
	if err := req.Validate(before.FirstUse); err != nil {
		return operation.Request{}, err
	}
	if err := lockOf(&before).Free("change"); err != nil {
		return operation.Request{}, err
	}
	secret, err := s.edited(ctx, before, req)
	if err != nil {
		return operation.Request{}, err
	}
	op := s.operation(before, nf.SiteChange, req.Timeout, req.Trace)
	return s.locking(op, secret, func(ctx context.Context) (store.Op, error) {
		return s.locks.TakeOp(ctx, op, before, func(in *nf.Site) error {
			if err := edit(in, req); err != nil {
				return err
			}
			if secret != nil {
				in.SecretsRecord, in.Secrets = under(in.UID, op.ID), slices.Sorted(maps.Keys(secret.Secrets))
			}
			in.State = nf.SiteChanging
			return nil
		})
	}), nil
}

// edited returns a site's secrets with the change applied, or nil if the
// request does not change them.
func (s *Sites) edited(ctx context.Context, in nf.Site, req nf.SiteChangeRequest) (*nf.SiteSecrets, error) {
	if req.Secrets == nil {
		return nil, nil
	}
	m, err := s.loadSecrets(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := req.Secrets(&m); err != nil {
		return nil, err
	}
	if v := m.Violations(in.Driver); len(v) > 0 {
		return nil, nf.E(nf.Invalid, "change", "site "+in.ID, v)
	}
	return &m, s.cfg.Usable(m)
}

// edit applies the request to the site's record.
func edit(in *nf.Site, req nf.SiteChangeRequest) error {
	if req.Edit != nil {
		if err := req.Edit(in); err != nil {
			return err
		}
		if err := in.Check(); err != nil {
			return err
		}
	}
	in.Hosts = slices.Clone(in.Hosts)
	var v nf.Violations
	for i, name := range req.Remove {
		at := slices.IndexFunc(in.Hosts, func(h nf.SiteHost) bool { return h.Name == name })
		switch {
		case at < 0:
			v = append(v, nf.Violation{Field: fmt.Sprintf("remove_hosts[%d]", i), Message: fmt.Sprintf("%q is not a host of the site", name)})
		case in.Hosts[at].Role != nf.Worker:
			v = append(v, nf.Violation{Field: fmt.Sprintf("remove_hosts[%d]", i), Message: fmt.Sprintf("%q is not a worker; the control plane cannot be changed", name)})
		default:
			in.Hosts[at].State = nf.HostLeaving
		}
	}
	for i, h := range req.Add {
		if slices.ContainsFunc(in.Hosts, func(there nf.SiteHost) bool {
			return there.Name == h.Name || there.Address == h.Address && there.Port == h.Port
		}) {
			v = append(v, nf.Violation{Field: fmt.Sprintf("add_hosts[%d]", i), Message: fmt.Sprintf("%q, or a host with its address and port, is already part of the site", h.Name)})
			continue
		}
		h.State = nf.HostJoining
		in.Hosts = append(in.Hosts, h)
	}
	v = append(v, scale(in, req)...)
	if len(in.Hosts) > nf.MaxSiteHosts {
		v = append(v, nf.Violation{Field: "add_hosts", Message: fmt.Sprintf("would give the site more than %d hosts", nf.MaxSiteHosts)})
	}
	if len(v) > 0 {
		return nf.E(nf.Invalid, "change", "site "+in.ID, v)
	}
	return nil
}

// Remove accepts the removal of a site. It returns nf.Busy while another
// operation of the site runs, and nf.Conflict while VNF instances that the
// request does not name use its region.
func (s *Sites) Remove(ctx context.Context, id string, req nf.SiteRemoveRequest) (nf.Operation, error) {
	return s.accept(ctx, id, req.Key, func() (operation.Request, error) { return s.remove(ctx, id, req) })
}

func (s *Sites) remove(ctx context.Context, id string, req nf.SiteRemoveRequest) (operation.Request, error) {
	before, err := s.sites.Get(ctx, id)
	if err != nil {
		return operation.Request{}, err
	}
	if err := lockOf(&before).Free("remove"); err != nil {
		return operation.Request{}, err
	}
	if before.Registered {
		if err := s.unused(ctx, before, req.Instances); err != nil {
			return operation.Request{}, err
		}
	}
	op := s.operation(before, nf.SiteRemove, req.Timeout, req.Trace)
	op.Site.Instances, op.Site.KeepHosts = req.Instances, req.KeepHosts
	return s.locking(op, nil, func(ctx context.Context) (store.Op, error) {
		return s.locks.TakeOp(ctx, op, before, func(in *nf.Site) error { in.State = nf.SiteRemoving; return nil })
	}), nil
}

// unused returns nf.Conflict, with a violation for each, if the site's region has
// users other than the instances in but, or if only an owner may terminate one of these.
func (s *Sites) unused(ctx context.Context, in nf.Site, but []string) error {
	var v nf.Violations
	for user, err := range s.cfg.Regions.Users(ctx, nf.Holding{Region: in.Region}) {
		if err != nil {
			return err
		}
		if user.Kind != nf.InstanceSubject || !slices.Contains(but, user.ID) {
			v = append(v, nf.Violation{}.Saying(nf.Textf("its region is used by %s", user.Mention())))
			continue
		}
		owner, err := s.ownerOf(ctx, user.ID)
		if err != nil {
			return err
		}
		if owner != (nf.Subject{}) {
			v = append(v, nf.Violation{}.Saying(nf.Textf("%s in its region is a member of %s; change or terminate that", user.Mention(), owner.Mention())))
		}
	}
	if len(v) > 0 {
		return nf.E(nf.Conflict, "remove", "site "+in.ID, v)
	}
	return nil
}

func (s *Sites) ownerOf(ctx context.Context, instance string) (nf.Subject, error) {
	if s.cfg.Owners == nil {
		return nf.Subject{}, nil
	}
	return s.cfg.Owners.Owner(ctx, instance)
}

// operation returns a new operation of a site.
func (s *Sites) operation(in nf.Site, verb nf.Verb, timeout time.Duration, trace string) nf.Operation {
	op := s.acceptor.New(subjectOf(in.ID), timeout)
	op.Region, op.Project, op.Verb, op.Trace, op.Site.UID = in.Region, in.Project, verb, trace, in.UID
	return op
}

// accept executes a request, unless it was already executed under the same key.
// Keys are those of the requests to one site.
func (s *Sites) accept(ctx context.Context, site string, key nf.RequestKey, prepare func() (operation.Request, error)) (nf.Operation, error) {
	key.Client += "\x00site " + site
	return s.acceptor.Accept(ctx, key, prepare)
}

// locking returns the request of an operation. It stores the operation's
// secrets, if there are any, before the op that lock returns, which makes the site
// name the operation.
func (s *Sites) locking(op nf.Operation, m *nf.SiteSecrets, lock func(context.Context) (store.Op, error)) operation.Request {
	return operation.Request{Operation: op, Lock: func(ctx context.Context, op nf.Operation) ([]store.Op, error) {
		locked, err := lock(ctx)
		if m == nil || err != nil {
			return []store.Op{locked}, err
		}
		id := under(op.Site.UID, op.ID)
		kept, err := s.secrets.InsertOp(id, secretsRecord{*m, id})
		return []store.Op{kept, locked}, err
	}}
}

// withdraw deletes the secrets of a request that was not accepted.
func (s *Sites) withdraw(ctx context.Context, op nf.Operation) error {
	return nf.IgnoreNotFound(s.secrets.Delete(ctx, under(op.Site.UID, op.ID)))
}
