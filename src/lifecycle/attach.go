package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// attach attaches the workloads of the plan to the networks of the target.
func (pr *preparer) attach(ctx context.Context, p *prepared) error {
	attachments := p.target.spec.Networks
	if len(attachments) == 0 {
		return nil
	}
	if pr.networks == nil {
		return nf.E(nf.Unsupported, "attach", "VNF instance "+p.target.id, errors.New("this service has no virtual networks"))
	}
	networks := map[string]nf.Network{} // by name
	wanted := make([]nf.Connection, len(attachments))
	var v nf.Violations
	for i, a := range attachments {
		wanted[i] = nf.Connection{Attachment: a, Field: fmt.Sprintf("networks[%d]", i)}
		if _, read := networks[a.Network]; read {
			continue
		}
		n, err := pr.networks.Get(ctx, nf.SharedID(p.target.region, a.Network))
		switch {
		case err == nil:
			networks[a.Network] = n
		case nf.KindOf(err) == nf.NotFound:
			v = append(v, nf.NoNetwork(i, p.target.region, a.Network))
		default:
			return err
		}
	}
	if len(v) > 0 {
		return nf.E(nf.NotFound, "use", "networks of "+p.target.region, v)
	}
	plan, err := p.plan.Attach(wanted, func(a nf.Attachment, w render.Workload) (nf.Connection, error) {
		return pr.networks.Connect(networks[a.Network], a, w.Replicas)
	})
	if v := nf.ViolationsOf(err); v != nil {
		err = nf.E(nf.Invalid, "attach", "VNF instance "+p.target.id, v)
	}
	if err == nil {
		p.plan = plan
	}
	return err
}
