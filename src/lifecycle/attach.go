package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// attach attaches the workloads of the plan to the networks that the package and the
// target ask for. If the package is not rendered, these are p.attached.
func (pr *preparer) attach(ctx context.Context, p *prepared) error {
	wanted := asked("networks", p.attached)
	if p.attached == nil {
		wanted = p.plan.Combine(p.networks, asked("networks", p.target.spec.Networks))
	}
	if len(wanted) == 0 {
		return nil
	}
	if pr.networks == nil {
		return nf.E(nf.Unsupported, "attach", "VNF instance "+p.target.id, errors.New("this service has no virtual networks"))
	}
	networks, err := pr.networksFor(ctx, p.target, wanted)
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

// asked returns attachments that a field of the request asks for.
func asked(field string, attachments []nf.Attachment) []nf.Connection {
	out := make([]nf.Connection, len(attachments))
	for i, a := range attachments {
		out[i] = nf.Connection{Attachment: a, Field: fmt.Sprintf("%s[%d]", field, i)}
	}
	return out
}

// networksFor returns the networks of attachments by their names. It returns
// nf.NotFound with a violation for each that does not exist, or that the caller may not
// attach to and the instance is not attached to yet.
func (pr *preparer) networksFor(ctx context.Context, t target, wanted []nf.Connection) (map[string]nf.Network, error) {
	networks := map[string]nf.Network{}
	var v nf.Violations
	for _, c := range wanted {
		if _, read := networks[c.Network]; read {
			continue
		}
		n, err := pr.networks.Get(ctx, nf.SharedID(t.region, c.Network))
		has := slices.ContainsFunc(t.present.Attachments(), func(a nf.Attachment) bool { return a.Network == c.Network })
		if err == nil && !has && t.mayAttach != nil {
			err = t.mayAttach(ctx, n)
		}
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
