package networkservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// planner finds out in advance whether a request can be carried out.
type planner struct {
	services *Services
	verb     nf.Verb
	service  *nf.NetworkService // as the request asks for it
	before   []nf.ServiceMember // that may exist
	opts     nf.Options
}

// members returns the expected effect on each member that the request changes, and sets
// the regions of those that are placed.
func (p planner) members(ctx context.Context) ([]nf.MemberPreview, error) {
	var out []nf.MemberPreview
	all := slices.Clone(p.service.Content.Members)
	for i := range all {
		preview, err := p.member(ctx, &all[i])
		if err != nil {
			return nil, p.about(fmt.Sprintf("members[%d]", i), all[i], err)
		}
		if preview != nil {
			out = append(out, *preview)
		}
	}
	p.service.Content.Members = all
	gone, err := p.terminations(ctx, nf.Besides(all, p.before))
	return append(out, gone...), err
}

// member returns the expected effect on one member; nil: none.
func (p planner) member(ctx context.Context, m *nf.ServiceMember) (*nf.MemberPreview, error) {
	spec := p.service.Content.SpecOf(p.service.ID, *m)
	at := slices.IndexFunc(p.before, func(b nf.ServiceMember) bool { return b.Name == m.Name })
	var in nf.Instance
	err := error(nf.E(nf.NotFound, "get", "VNF instance", nil))
	if at >= 0 {
		if v := moved(p.before[at], *m); len(v) > 0 {
			return nil, nf.E(nf.Invalid, "change", "member "+m.Name, v)
		}
		m.Region, m.Placement = p.before[at].Region, nil
		in, err = p.services.cfg.Instances.Instance(ctx, nf.MemberID(p.service.ID, m.Name))
	}
	switch {
	case nf.KindOf(err) == nf.NotFound && err != nil:
		return p.instantiation(ctx, m, spec)
	case err != nil:
		return nil, err
	case in.Revision == 0 && same(present(in), spec): // it failed, and is created again
		return &nf.MemberPreview{Member: *m, Verb: nf.Instantiate}, nil
	case in.Revision == 0:
		return nil, nf.E(nf.Conflict, "change", "member "+m.Name, errors.New("its instantiation has failed; undo or terminate the service, or leave the member as it is"))
	case ready(in) && same(present(in), spec):
		return nil, nil
	}
	preview, err := p.services.cfg.Previews.PreviewUpgrade(ctx, in.ID, nf.UpgradeRequest{Edit: replaced(spec), Options: p.checks()})
	if err == nil && preview.Confirm != "" {
		err = nf.E(nf.Conflict, "change", "member "+m.Name, errors.New("the change needs a confirmation; make it to the VNF instance "+in.ID+" first"))
	}
	return &nf.MemberPreview{Member: *m, Verb: nf.Upgrade, Preview: preview}, err
}

func (p planner) instantiation(ctx context.Context, m *nf.ServiceMember, spec nf.Spec) (*nf.MemberPreview, error) {
	req := instantiation(*p.service, *m, spec)
	req.Placement, req.Options = m.Placement, p.checks()
	preview, err := p.services.cfg.Previews.PreviewInstantiate(ctx, req)
	if err == nil && preview.Placed != nil {
		m.Region, m.Placement = preview.Placed.Region, nil
	}
	return &nf.MemberPreview{Member: *m, Verb: nf.Instantiate, Preview: preview}, err
}

// terminations returns the expected effect of the termination of members that exist.
func (p planner) terminations(ctx context.Context, members []nf.ServiceMember) ([]nf.MemberPreview, error) {
	var out []nf.MemberPreview
	for _, m := range members {
		preview, err := p.services.cfg.Previews.PreviewTerminate(ctx, nf.MemberID(p.service.ID, m.Name), nf.TerminateRequest{By: subjectOf(p.service.ID)})
		switch {
		case nf.KindOf(err) == nf.NotFound && err != nil:
		case err != nil && nf.KindOf(err) != nf.Busy: // the termination waits for the other operation
			return nil, p.about("members", m, err)
		default:
			out = append(out, nf.MemberPreview{Member: m, Verb: nf.Terminate, Preview: preview})
		}
	}
	return out, nil
}

// checks returns the options of previews.
func (p planner) checks() nf.Options {
	return nf.Options{Secrets: p.opts.Secrets, Check: p.opts.Check, MayAttach: p.opts.MayAttach, MayUse: p.opts.MayUse, MayRegister: p.opts.MayRegister}
}

// about returns an error that names the member, and its field in violations.
func (p planner) about(field string, m nf.ServiceMember, err error) error {
	return p.service.MemberError(p.verb, field, m, err)
}

// moved returns a violation for each field of a member that cannot change.
func moved(before, m nf.ServiceMember) nf.Violations {
	var v nf.Violations
	for _, f := range []struct{ field, was, is string }{
		{"cloud_region_id", before.Region, m.Region}, {"namespace", before.Namespace, m.Namespace}, {"vnf_instance_name", before.Instance, m.Instance},
	} {
		if f.was == f.is || f.field == "cloud_region_id" && m.Placement != nil {
			continue
		}
		v = append(v, nf.Violation{Field: f.field, Message: fmt.Sprintf("cannot change from %q to %q; add a member with another name, and remove this one", f.was, f.is)})
	}
	return v
}

// instantiation returns the request for a member's instance, without options.
func instantiation(s nf.NetworkService, m nf.ServiceMember, spec nf.Spec) nf.InstantiateRequest {
	return nf.InstantiateRequest{Spec: spec, ID: nf.MemberID(s.ID, m.Name), Region: m.Region, Project: s.Project, Namespace: m.Namespace, Name: m.Instance}
}

// ready reports whether an instance is in force as its record describes it.
func ready(in nf.Instance) bool { return in.State == nf.Ready && in.Operation == "" }

// present returns the spec of an instance, in the form in which requests give it.
func present(in nf.Instance) nf.Spec {
	return nf.Spec{
		Package: in.Package, Inputs: in.Inputs, Labels: in.Labels, Description: in.Description, Release: in.Release, Namespaces: in.Namespaces,
		Amendments: in.Amendments, Annotations: in.Annotations, Networks: in.Networks, Volumes: in.Volumes, Drift: in.Drift, Claims: in.Claims, Workloads: in.Workloads, AAI: in.AAI,
	}
}

// same reports whether two specs are equal in their stored form.
func same(a, b nf.Spec) bool {
	left, lerr := json.Marshal(a)
	right, rerr := json.Marshal(b)
	return lerr == nil && rerr == nil && bytes.Equal(left, right)
}

// replaced returns the edit that replaces a spec.
func replaced(spec nf.Spec) func(*nf.Spec) error {
	return func(s *nf.Spec) error { *s = spec; return nil }
}
