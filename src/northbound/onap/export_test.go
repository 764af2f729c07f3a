package onap

import (
	"context"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// InStore stages uploads of at most 1 MiB in a store.
func InStore(kv store.KV) northbound.Staging {
	return func(ctx context.Context, content io.Reader) (northbound.Staged, error) {
		staged, err := store.NewBlobs(kv).Stage(ctx, content, 1<<20)
		if err != nil {
			return nil, err
		}
		return staged, nil
	}
}

// Wire returns the wire types of what clients send and get back, by the name of
// the object.
func Wire() map[string]any {
	return map[string]any{
		"definition": definition{}, "profile": profile{}, "connection": connection{}, "instance": instanceRequest{},
		"configuration": configRequest{}, "subscription": subscriptionRequest{},
	}
}
