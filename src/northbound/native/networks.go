package native

import (
	"context"
	"net/http"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// networkForm is the form of virtual networks.
func networkForm() form {
	return form{
		filters: []string{nf.AttributeRegion, nf.AttributeDriver, nf.AttributeState, nf.AttributeProject},
		path:    wire.NetworkPath,
		read: func(r *http.Request) (nf.SharedRequest, any, error) {
			body, key, err := read[wire.NetworkCreate](r)
			n := nf.Network{Name: body.Name, Region: body.Region, Project: body.Project, Driver: body.Driver}
			editNetwork(&n, body.NetworkEdit)
			return nf.SharedRequest{Resource: n, Holder: body.Holder, Key: key}, body.Timeout, err
		},
		edit: func(change patch, n *nf.Network) error {
			edit, err := apply(change, wire.NetworkEdit{Spec: n.Spec, Keep: n.Keep, Description: n.Description, Labels: n.Labels})
			if err == nil {
				editNetwork(n, edit)
			}
			return err
		},
		item: func(n nf.Network) any { return wire.NetworkOf(n) },
		show: func(_ context.Context, n nf.Network, u use, op string) any {
			out := wire.NetworkOf(n).With(u.count, u.users)
			if op != "" {
				out.Operation, out.Links["operation"] = op, wire.OperationPath(op)
			}
			return out
		},
		used: func(op nf.Operation) bool { return op.Network.Used },
	}
}

func editNetwork(n *nf.Network, e wire.NetworkEdit) {
	n.Spec, n.Keep, n.Description, n.Labels = e.Spec, e.Keep, e.Description, e.Labels
}
