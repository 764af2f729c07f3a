package lifecycle_test

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// fakeWorkloads makes regions of clusters: "taken" is another one's. The users of a region
// are the holders in the store. What the real one does is tested with real API servers.
type fakeWorkloads struct {
	*reservations

	kv      store.KV
	process *operationtest.Process // that may die; nil: it does not
}

func (w fakeWorkloads) Check(_ context.Context, p nf.Parent) error {
	if p.Workload.Region == "taken" {
		return nf.E(nf.Exists, "register", "cloud region taken", nil)
	}
	return nil
}

func (w fakeWorkloads) Register(ctx context.Context, held func(context.Context) error, p nf.Parent) error {
	if err := held(ctx); err != nil {
		return err
	}
	return fakeVolumes(w).call("register a region", func() { w.claims["region "+p.Workload.Region] = p.Workload.Cluster })
}

func (w fakeWorkloads) Deregister(ctx context.Context, held func(context.Context) error, p nf.Parent) error {
	if err := held(ctx); err != nil {
		return err
	}
	users, err := w.Users(ctx, p)
	if err != nil || len(users) > 0 {
		return &nf.Error{Kind: nf.Conflict, Op: "remove", Subject: "cloud region " + p.Workload.Region, Reason: nf.ReasonHeld, Err: err}
	}
	return fakeVolumes(w).call("deregister a region", func() { delete(w.claims, "region "+p.Workload.Region) })
}

func (w fakeWorkloads) Users(ctx context.Context, p nf.Parent) ([]nf.Subject, error) {
	var out []nf.Subject
	for holder, err := range store.NewHolds(w.kv, "regions/").Holders(ctx, p.Workload.Region, nil) {
		if err != nil {
			return nil, err
		}
		out = append(out, holder.Subject)
	}
	return out, nil
}
