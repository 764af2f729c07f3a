package site

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Create accepts a new site, and returns the operation that builds it; nf.Exists
// when the id or the region's is taken. The operation that the same request has
// begun before is returned as it is.
func (s *Sites) Create(ctx context.Context, req nf.SiteRequest) (nf.SiteOperation, error) {
	if req.Site.Region == "" {
		req.Site.Region = req.Site.ID
	}
	if err := req.Validate(); err != nil {
		return nf.SiteOperation{}, err
	}
	subject := "site " + req.Site.ID
	if s.cfg.Runners[req.Site.Driver] == nil {
		return nf.SiteOperation{}, nf.E(nf.Unsupported, "build", subject, fmt.Errorf("this service has no driver %s", req.Site.Driver))
	}
	if err := s.cfg.Usable(req.Material); err != nil {
		return nf.SiteOperation{}, err
	}
	if op, there, err := s.repeated(ctx, req.Site.ID, req.Key, subject); there || err != nil {
		return op, err
	}
	if err := s.free(ctx, req.Site); err != nil {
		return nf.SiteOperation{}, err
	}
	now := s.now()
	in := req.Site
	in.UID, in.State, in.Request, in.Created, in.Updated = s.cfg.NewID(), nf.SiteBuilding, req.Key, now, now
	in.Registered, in.Untouched = false, true
	in.Secrets = slices.Sorted(maps.Keys(req.Material.Secrets))
	in.Hosts = slices.Clone(in.Hosts)
	for i := range in.Hosts {
		in.Hosts[i].State = nf.HostJoining
	}
	op := s.operation(in, nf.SiteBuild, req.Timeout, req.Key, req.Trace)
	in.Material, in.Busy, in.Last = under(in.UID, op.ID), op.ID, op.ID
	err := s.accept(ctx, op, &req.Material, func() error { return s.sites.Insert(ctx, in.ID, in) })
	if nf.KindOf(err) == nf.Exists {
		err = taken(subject, "site_id")
	}
	return op, err
}

// free refuses a site whose id or region is taken. Between two that are asked
// for at once the region's registration decides.
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
	return nf.UnlessGone(err)
}

func taken(subject, field string) error {
	return nf.E(nf.Exists, "build", subject, nf.Violations{{Field: field, Message: "is taken"}})
}

// Change accepts a change of a site; nf.Busy while another operation of it runs.
// A change that changes nothing runs everything again.
func (s *Sites) Change(ctx context.Context, id string, req nf.SiteChangeRequest) (nf.SiteOperation, error) {
	subject := "site " + id
	if op, there, err := s.repeated(ctx, id, req.Key, subject); there || err != nil {
		return op, err
	}
	before, err := s.sites.Get(ctx, id)
	if err != nil {
		return nf.SiteOperation{}, err
	}
	if err := req.Validate(before.FirstUse); err != nil {
		return nf.SiteOperation{}, err
	}
	if before.Busy != "" {
		return nf.SiteOperation{}, busy("change", before)
	}
	secret, err := s.edited(ctx, before, req)
	if err != nil {
		return nf.SiteOperation{}, err
	}
	op := s.operation(before, nf.SiteChange, req.Timeout, req.Key, req.Trace)
	err = s.accept(ctx, op, secret, func() error {
		_, err := s.sites.Update(ctx, id, func(in *nf.Site) error {
			if err := admissible("change", *in, before); err != nil {
				return err
			}
			if err := change(in, req); err != nil {
				return err
			}
			if secret != nil {
				in.Material, in.Secrets = under(in.UID, op.ID), slices.Sorted(maps.Keys(secret.Secrets))
			}
			in.State, in.Busy, in.Last, in.Updated = nf.SiteChanging, op.ID, op.ID, s.now()
			return nil
		})
		return err
	})
	return op, err
}

// edited returns what is secret of a site as a change makes it, or nil when it
// stays as it is.
func (s *Sites) edited(ctx context.Context, in nf.Site, req nf.SiteChangeRequest) (*nf.SiteMaterial, error) {
	if req.Material == nil {
		return nil, nil
	}
	present, err := s.materials.Get(ctx, in.Material)
	if err != nil {
		return nil, err
	}
	m := present.SiteMaterial
	if err := req.Material(&m); err != nil {
		return nil, err
	}
	if v := m.Violations(in.Driver); len(v) > 0 {
		return nil, nf.E(nf.Invalid, "change", "site "+in.ID, v)
	}
	return &m, s.cfg.Usable(m)
}

// change makes the record what is wanted.
func change(in *nf.Site, req nf.SiteChangeRequest) error {
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
			v = append(v, nf.Violation{Field: fmt.Sprintf("remove_hosts[%d]", i), Message: fmt.Sprintf("%q is no host of the site", name)})
		case in.Hosts[at].Role != nf.Worker:
			v = append(v, nf.Violation{Field: fmt.Sprintf("remove_hosts[%d]", i), Message: fmt.Sprintf("%q is no worker: the control plane stays what it was built as", name)})
		default:
			in.Hosts[at].State = nf.HostLeaving
		}
	}
	for i, h := range req.Add {
		if slices.ContainsFunc(in.Hosts, func(there nf.SiteHost) bool {
			return there.Name == h.Name || there.Address == h.Address && there.Port == h.Port
		}) {
			v = append(v, nf.Violation{Field: fmt.Sprintf("add_hosts[%d]", i), Message: fmt.Sprintf("%q, or a host at its place, is part of the site", h.Name)})
			continue
		}
		h.State = nf.HostJoining
		in.Hosts = append(in.Hosts, h)
	}
	if len(in.Hosts) > nf.MaxSiteHosts {
		v = append(v, nf.Violation{Field: "add_hosts", Message: fmt.Sprintf("make more than %d hosts", nf.MaxSiteHosts)})
	}
	if len(v) > 0 {
		return nf.E(nf.Invalid, "change", "site "+in.ID, v)
	}
	return nil
}

// Remove accepts the end of a site; nf.Busy while another operation of it runs,
// nf.Conflict while VNF instances use its region that the request does not name.
func (s *Sites) Remove(ctx context.Context, id string, req nf.SiteRemoveRequest) (nf.SiteOperation, error) {
	subject := "site " + id
	if op, there, err := s.repeated(ctx, id, req.Key, subject); there || err != nil {
		return op, err
	}
	before, err := s.sites.Get(ctx, id)
	if err != nil {
		return nf.SiteOperation{}, err
	}
	if before.Busy != "" {
		return nf.SiteOperation{}, busy("remove", before)
	}
	if before.Registered {
		if err := s.unused(ctx, before, req.Instances); err != nil {
			return nf.SiteOperation{}, err
		}
	}
	op := s.operation(before, nf.SiteRemove, req.Timeout, req.Key, req.Trace)
	op.Instances, op.KeepHosts = req.Instances, req.KeepHosts
	err = s.accept(ctx, op, nil, func() error {
		_, err := s.sites.Update(ctx, id, func(in *nf.Site) error {
			if err := admissible("remove", *in, before); err != nil {
				return err
			}
			in.State, in.Busy, in.Last, in.Updated = nf.SiteRemoving, op.ID, op.ID, s.now()
			return nil
		})
		return err
	})
	return op, err
}

// unused refuses while instances use the site's region that may not be
// terminated, naming each.
func (s *Sites) unused(ctx context.Context, in nf.Site, but []string) error {
	var v nf.Violations
	for user, err := range s.cfg.Regions.Users(ctx, nf.Holding{Region: in.Region}) {
		if err != nil {
			return err
		}
		if !slices.Contains(but, user) {
			v = append(v, nf.Violation{Message: "its region is used by VNF instance " + user})
		}
	}
	if len(v) > 0 {
		return nf.E(nf.Conflict, "remove", "site "+in.ID, v)
	}
	return nil
}

// Cancel asks an operation to stop; nf.Conflict when it has ended.
func (s *Sites) Cancel(ctx context.Context, site, id string) (nf.SiteOperation, error) {
	op, err := s.operations.Update(ctx, under(site, id), func(op *nf.SiteOperation) error {
		if op.State.Final() || op.Outcome != "" {
			return nf.E(nf.Conflict, "cancel", "operation "+id, errors.New("it has ended"))
		}
		op.Cancel = true
		return nil
	})
	s.announce()
	return op, err
}

// operation returns a new operation of a site.
func (s *Sites) operation(in nf.Site, verb nf.SiteVerb, timeout time.Duration, key nf.RequestKey, trace string) nf.SiteOperation {
	if timeout <= 0 {
		timeout = s.cfg.Timeout
	}
	now := s.now()
	return nf.SiteOperation{
		ID: s.operationID(), Site: in.ID, UID: in.UID, Region: in.Region, Project: in.Project, Verb: verb, State: nf.Queued,
		Request: key, Trace: trace, Steps: []nf.Step{}, Accepted: now, Deadline: now.Add(timeout),
	}
}

// accept keeps an operation and what is secret for it, and then lets lock make
// the site name the operation: from then on it will be run. What is kept for a
// request that is refused after all is taken back, or swept later.
func (s *Sites) accept(ctx context.Context, op nf.SiteOperation, m *nf.SiteMaterial, lock func() error) error {
	key, secret := under(op.Site, op.ID), under(op.UID, op.ID)
	if m != nil {
		if err := s.materials.Insert(ctx, secret, material{*m, secret}); err != nil {
			return err
		}
	}
	err := s.operations.Insert(ctx, key, op)
	if err == nil {
		err = lock()
	}
	if err == nil {
		s.poke()
		s.cfg.Logger.InfoContext(ctx, "operation accepted", "operation", op.ID, "verb", op.Verb.Qualified(), "site", op.Site,
			"region", op.Region, "deadline", op.Deadline.Format(time.RFC3339))
		return nil
	}
	if nf.KindOf(err) == nf.Unreachable {
		return err // the lock may have been written: the sweep will see
	}
	undo := nf.UnlessGone(s.operations.Delete(ctx, key))
	if m != nil {
		undo = errors.Join(undo, nf.UnlessGone(s.materials.Delete(ctx, secret)))
	}
	if undo != nil {
		s.cfg.Logger.WarnContext(ctx, "a refused request has left something behind", "operation", op.ID, "error", undo)
	}
	return err
}

// repeated returns the operation that was begun under the key before.
func (s *Sites) repeated(ctx context.Context, site string, key nf.RequestKey, subject string) (nf.SiteOperation, bool, error) {
	if key.Key == "" {
		return nf.SiteOperation{}, false, nil
	}
	for op, err := range s.operations.All(ctx, site+"/") {
		switch {
		case err != nil:
			return nf.SiteOperation{}, false, err
		case !key.Same(op.Request):
			continue
		case key.Digest != op.Request.Digest:
			return nf.SiteOperation{}, false, &nf.Error{Kind: nf.Conflict, Op: "change", Subject: subject, Reason: "idempotency",
				Err: errors.New("another request was made under this key")}
		}
		return op, true, nil
	}
	return nf.SiteOperation{}, false, nil
}

func busy(verb string, in nf.Site) error {
	return &nf.Error{Kind: nf.Busy, Op: verb, Subject: "site " + in.ID, Operation: in.Busy, Err: errors.New("operation " + in.Busy + " is running")}
}

// admissible refuses when the site is not what the request was looked at with.
func admissible(verb string, now, before nf.Site) error {
	switch {
	case now.Busy != "":
		return busy(verb, now)
	case now.UID != before.UID || now.Material != before.Material || now.Last != before.Last:
		return nf.E(nf.Conflict, verb, "site "+now.ID, errors.New("somebody else has changed it meanwhile"))
	}
	return nil
}
