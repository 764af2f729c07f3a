package lifecycle_test

import (
	"context"
	"errors"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/operation/operationtest"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// fakeVolumes knows every volume but "missing", with 10Gi. "busy" is bound to the claim
// of another instance. The store has the holds of instances.
type fakeVolumes struct {
	*reservations

	kv      store.KV
	process *operationtest.Process // that may die; nil: it does not
}

// reservations are the claims that volumes are reserved for, by the id of the volume.
type reservations struct {
	mu     sync.Mutex
	claims map[string]string
}

func (v fakeVolumes) holds() store.Holds { return store.NewHolds(v.kv, "volumes/") }

func (v fakeVolumes) Get(ctx context.Context, id string) (nf.Volume, error) {
	return fakeNetworks{v.kv}.Get(ctx, id)
}

func (v fakeVolumes) Use(ctx context.Context, id string, holder nf.Holder) (nf.Volume, error) {
	if err := v.holds().Add(ctx, id, holder); err != nil {
		return nf.Volume{}, err
	}
	return v.Get(ctx, id)
}

func (v fakeVolumes) Leave(ctx context.Context, id string, holder nf.Holder) error {
	return v.holds().Drop(ctx, id, holder)
}

func (v fakeVolumes) Claim(_ context.Context, in nf.Volume, namespace, claim string) (nf.VolumeClaim, error) {
	if err := v.free(in, namespace+"/"+claim); err != nil {
		return nf.VolumeClaim{}, err
	}
	return nf.VolumeClaim{PV: "k8splugin-" + in.Name, Size: "10Gi", AccessModes: []string{"ReadWriteOnce"}, Mode: "Filesystem"}, nil
}

func (v fakeVolumes) free(in nf.Volume, claim string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if has := v.claims[in.ID]; in.Name == "busy" || has != "" && has != claim {
		return nf.E(nf.Conflict, "use", "volume "+in.ID, errors.New("it is in use by the claim "+has))
	}
	return nil
}

func (v fakeVolumes) Bind(ctx context.Context, held func(context.Context) error, in nf.Volume, namespace, claim string) error {
	if err := errors.Join(held(ctx), v.free(in, namespace+"/"+claim)); err != nil {
		return err
	}
	return v.call("reserve a volume", func() { v.claims[in.ID] = namespace + "/" + claim })
}

func (v fakeVolumes) Unbind(ctx context.Context, held func(context.Context) error, in nf.Volume, namespace, claim string) error {
	if err := held(ctx); err != nil {
		return err
	}
	return v.call("free a volume", func() {
		if v.claims[in.ID] == namespace+"/"+claim {
			delete(v.claims, in.ID)
		}
	})
}

// call makes a change outside the store.
func (v fakeVolumes) call(name string, change func()) error {
	do := func() (any, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		change()
		return nil, nil
	}
	if v.process == nil {
		_, err := do()
		return err
	}
	_, err := operationtest.Call(v.process, name, do, nil)
	return err
}
