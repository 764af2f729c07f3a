package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// fakeNetworks knows every network but "missing" and "absent", in every region, as a name
// holds them all. It can create each of them. "failed" cannot be used. The store has the holds of instances.
type fakeNetworks struct{ kv store.KV }

func (n fakeNetworks) holds() store.Holds { return store.NewHolds(n.kv, "networks/") }

func (n fakeNetworks) Get(_ context.Context, id string) (nf.Network, error) {
	region, name, _ := strings.Cut(id, ".")
	if name == "missing" || name == "absent" {
		return nf.Network{}, nf.E(nf.NotFound, "get", "network "+id, nil)
	}
	return nf.Network{ID: id, Name: name, Region: region, State: nf.SharedActive}, nil
}

func (n fakeNetworks) Connect(in nf.Network, a nf.Attachment, replicas int) (nf.Connection, error) {
	if slices.Contains(a.IPs, "none") {
		return nf.Connection{}, nf.Violations{{Field: "ips[0]", Message: "is none"}}
	}
	if len(a.IPs) > 0 && replicas != 1 {
		return nf.Connection{}, nf.E(nf.Invalid, "attach", "it", nf.Violations{{Field: "ips", Message: "are too few"}})
	}
	return nf.Connection{Attachment: a, Selection: map[string]any{"name": in.Name, "namespace": "networks"}}, nil
}

func (n fakeNetworks) Use(ctx context.Context, id string, holder nf.Holder) (nf.Network, error) {
	if err := n.holds().Add(ctx, id, holder); err != nil {
		return nf.Network{}, err
	}
	in, err := n.Get(ctx, id)
	if in.Name == "failed" {
		err = nf.E(nf.Conflict, "use", "network "+id, errors.New("it has failed"))
	}
	return in, err
}

func (n fakeNetworks) Plan(_ context.Context, wanted nf.Network) (nf.Network, error) {
	if string(wanted.Spec) == "wrong" {
		return wanted, nf.E(nf.Invalid, "create", "network "+wanted.Name, nf.Violations{{Field: "spec.type", Message: "is wrong"}})
	}
	return wanted, nil
}

func (n fakeNetworks) Ensure(ctx context.Context, wanted nf.Network, holder nf.Holder) error {
	return n.holds().Add(ctx, nf.SharedID(wanted.Region, wanted.Name), holder)
}

func (n fakeNetworks) Leave(ctx context.Context, id string, holder nf.Holder) error {
	return n.holds().Drop(ctx, id, holder)
}
