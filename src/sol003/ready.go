package sol003

import (
	"cmp"
	"context"
	"errors"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// errInstantiable ends the preparation of a request that is only checked.
var errInstantiable = errors.New("the request can be accepted")

// Instantiable checks a request to instantiate a VNF as Instantiate does, except for its
// VIMs, and accepts nothing. If the request was accepted before under its key, repeated is
// true, and it returns the occurrence. The errors are those of Instantiate.
func (m *Manager) Instantiable(ctx context.Context, id string, req nf.InstantiateVNFRequest) (o nf.Occurrence, repeated bool, err error) {
	o, err = m.begin(ctx, id, nf.OccurrenceInstantiate, req.VNFRequest, func(ctx context.Context, v nf.VNF) (record, error) {
		_, _, err := m.resolve.instantiation(ctx, v, req)
		return record{}, cmp.Or(err, errInstantiable)
	})
	if errors.Is(err, errInstantiable) {
		return nf.Occurrence{}, false, nil
	}
	return o, err == nil, err
}
