package main

import (
	"context"
	"io"

	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

// staging stores the content of requests until it is used.
func staging(kv store.KV, limit int64) northbound.Staging {
	blobs := store.NewBlobs(kv)
	return func(ctx context.Context, content io.Reader) (northbound.Staged, error) {
		staged, err := blobs.Stage(ctx, content, limit)
		if err != nil {
			return nil, err // not a nil *Staged, which would be a non-nil Staged
		}
		return staged, nil
	}
}
