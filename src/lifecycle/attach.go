package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// attach attaches the workloads of the plan to the networks that the package and the
// target ask for, or to those of the present instance if these are kept.
func (pr *preparer) attach(ctx context.Context, p *prepared) error {
	requested := asked(p.target.spec.Networks)
	wanted := asked(p.target.present.Attachments())
	if !p.keeps {
		points, err := pr.connectionPoints(ctx, p)
		if err != nil {
			return err
		}
		wanted = p.plan.Combine(p.plan.Combine(p.declared.networks, points), requested)
	}
	if len(wanted) == 0 {
		return nil
	}
	definitions := define(wanted, p.declared.networks, requested)
	if pr.networks == nil {
		return nf.E(nf.Unsupported, "attach", "VNF instance "+p.target.id, errors.New("this service has no virtual networks"))
	}
	networks, err := pr.networksFor(ctx, p.target, wanted, definitions)
	if err != nil {
		return err
	}
	plan, err := p.plan.Attach(wanted, func(a nf.Attachment, w render.Workload) (nf.Connection, error) {
		return pr.networks.Connect(networks[a.Network], a, w.Replicas)
	})
	if v := nf.ViolationsOf(err); v != nil {
		err = nf.E(nf.Invalid, "attach", "VNF instance "+p.target.id, v)
	}
	if err != nil {
		return err
	}
	p.plan, p.attached = plan, nil
	for _, c := range wanted {
		p.attached = append(p.attached, c.Attachment)
	}
	if reflect.DeepEqual(p.attached, p.target.spec.Networks) {
		p.attached = nil
	}
	return nil
}

// connectable returns nf.Invalid if workloads would get more pods than their attachments
// allow: two pods cannot have one address. The settings are the numbers of pods, in the
// order of the request.
func (pr *preparer) connectable(ctx context.Context, in nf.Instance, plan render.Plan, settings []nf.Setting) error {
	var wrong nf.Violations
	for i, s := range settings {
		pods, err := strconv.Atoi(string(s.Value))
		if err != nil || pods < 2 {
			continue // no number of pods, or one that any attachment allows
		}
		for _, a := range in.Attachments() {
			if !slices.ContainsFunc(plan.Selected([]string{a.Workload}), func(ref nf.Ref) bool { return ref.Key() == s.Key() }) {
				continue
			}
			n, err := pr.networks.Get(ctx, nf.SharedID(in.Region, a.Network))
			if err == nil {
				_, err = pr.networks.Connect(n, a, pods)
			}
			violations := nf.ViolationsOf(err)
			if err != nil && violations == nil {
				return err
			}
			for _, v := range violations {
				wrong = append(wrong, nf.Violation{Field: fmt.Sprintf("workloads[%d]", i)}.
					Saying(nf.Textf("cannot have %d pods with the attachment to network %s: %s: %s", pods, a.Network, v.Field, v.Said())))
			}
		}
	}
	if len(wrong) > 0 {
		return nf.E(nf.Invalid, string(nf.Scale), "VNF instance "+in.ID, wrong)
	}
	return nil
}

// asked returns attachments that the request asks for.
func asked(attachments []nf.Attachment) []nf.Connection {
	out := make([]nf.Connection, len(attachments))
	for i, a := range attachments {
		out[i] = nf.Connection{Attachment: a, At: nf.Place{Field: fmt.Sprintf("networks[%d]", i)}}
	}
	return out
}

// define returns the definitions of networks by their names: those of the request, and
// otherwise those of the package. The first of the wanted attachments of each network has
// the definition, and the others have none.
func define(wanted, own, requested []nf.Connection) map[string]nf.Connection {
	out := map[string]nf.Connection{}
	for _, c := range slices.Concat(wanted, own, requested) {
		if c.Create != nil {
			out[c.Network] = c
		}
	}
	seen := map[string]bool{}
	for i, c := range wanted {
		if wanted[i].Create = nil; !seen[c.Network] {
			wanted[i].Create = out[c.Network].Create
		}
		seen[c.Network] = true
	}
	return out
}

// networksFor returns the networks of attachments by their names. It returns
// nf.NotFound with a violation for each that neither exists nor is defined, or that the
// caller may not attach to and the instance is not attached to yet.
func (pr *preparer) networksFor(ctx context.Context, t target, wanted []nf.Connection, definitions map[string]nf.Connection) (map[string]nf.Network, error) {
	networks := map[string]nf.Network{}
	var v nf.Violations
	for _, c := range wanted {
		if _, read := networks[c.Network]; read {
			continue
		}
		n, err := pr.network(ctx, t, c.Network, definitions[c.Network])
		switch {
		case err == nil:
			networks[c.Network] = n
		case nf.KindOf(err) == nf.NotFound:
			v = append(v, c.Violation("network", fmt.Sprintf("cloud region %s has no network %q", t.region, c.Network)))
		default:
			return nil, err
		}
	}
	if len(v) > 0 {
		return nil, nf.E(nf.NotFound, "use", "networks of "+t.region, v)
	}
	return networks, nil
}

// network returns the network with a name, or the one that its definition creates. If
// the instance is attached to it already, neither the caller's permission nor the
// definition is compared.
func (pr *preparer) network(ctx context.Context, t target, name string, definition nf.Connection) (nf.Network, error) {
	has := slices.ContainsFunc(t.present.Attachments(), func(a nf.Attachment) bool { return a.Network == name })
	allow := t.mayAttach
	if has || allow == nil {
		allow = func(context.Context, nf.Network, bool) error { return nil }
	}
	n, err := pr.networks.Get(ctx, nf.SharedID(t.region, name))
	exists := err == nil
	if exists {
		err = allow(ctx, n, false)
	}
	if definition.Create == nil || exists && has {
		return n, err
	}
	wanted := networkOf(t.region, t.project, definition.Attachment)
	if err := allow(ctx, wanted, true); err != nil {
		return n, err
	}
	switch hidden := err != nil && nf.KindOf(err) == nf.NotFound; {
	case exists && hidden:
		return n, nf.E(nf.Exists, "create", "network "+n.ID, nf.Violations{definition.Violation("create", "a network has the name")})
	case err != nil && !hidden:
		return n, err
	}
	n, err = pr.networks.Plan(ctx, wanted)
	return n, under(definition, err)
}

// under returns an error about a network with the place of its definition.
func under(definition nf.Connection, err error) error {
	violations := slices.Clone(nf.ViolationsOf(err))
	if violations == nil {
		return err
	}
	for i, v := range violations {
		if v.Object == (nf.Ref{}) {
			place := definition.Violation("create."+v.Field, "")
			violations[i].Field, violations[i].File, violations[i].Line = place.Field, place.File, place.Line
		}
	}
	return rewritten(err, violations)
}
