package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// connectionPoints returns the attachments that the network parameters of the target ask
// for. A connection point that is no network, or that the caller may not attach to, is a
// variable and nothing else. If it names a workload, this is a warning.
func (pr *preparer) connectionPoints(ctx context.Context, p *prepared) ([]nf.Connection, error) {
	if pr.networks == nil {
		return nil, nil
	}
	t := p.target
	var out []nf.Connection
	for _, c := range t.spec.Inputs.ConnectionPoints(t.region) {
		ok, err := pr.isNetwork(ctx, p, c.Network)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, c)
		} else if c.Workload != "" {
			p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf("%s: cloud region %s has no network %q, so that this is only a variable", c.At.Field, t.region, c.Network))
		}
	}
	return out, nil
}

// isNetwork reports whether a name is that of a network that the caller may attach to, or
// that the request or the package creates.
func (pr *preparer) isNetwork(ctx context.Context, p *prepared, name string) (bool, error) {
	if len(nf.CheckSharedName("", name, nf.NetworkSubject)) > 0 {
		return false, nil
	}
	defines := func(c nf.Connection) bool { return c.Create != nil && c.Network == name }
	if slices.ContainsFunc(p.declared.networks, defines) || slices.ContainsFunc(asked(p.target.spec.Networks), defines) {
		return true, nil
	}
	_, err := pr.network(ctx, p.target, name, nf.Connection{})
	return err == nil, nf.IgnoreNotFound(err)
}
