package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// list reads the scope into the view. The version of a kind that is not served has no
// objects.
func (s *stream) list(ctx context.Context) error {
	_, err := s.read(ctx)
	if s.unserved {
		return nil
	}
	return err
}

// vanish drops all objects of a kind that is not served. If the region serves another
// version of it, the objects exist, and vanish returns nf.Unreachable.
func (s *stream) vanish(ctx context.Context) error {
	served, err := s.client.servesKind(ctx, s.scope.kind)
	switch {
	case err != nil:
		return err
	case served:
		return &nf.Error{
			Kind: nf.Unreachable, Reason: nf.ReasonUnavailable, Op: "watch", Subject: s.scope.kind.Kind + " objects",
			Err: fmt.Errorf("the cloud region no longer serves them in version %s", s.scope.kind.Version),
		}
	}
	s.complete(nil)
	return nil
}

// servesKind reports whether the region serves any version of a kind, one of which it has
// just not found. The region may list its versions anew only shortly after.
func (c *client) servesKind(ctx context.Context, k kind) (bool, error) {
	gvks := []schema.GroupVersionKind{k.GroupVersionKind}
	ks, err := c.apis.recent(ctx)
	for n := 1; err == nil && n < attempts && serves(ks.exact, gvks); n++ {
		if err = c.pause(ctx, backoff(n)/2); err == nil {
			ks, err = c.apis.discover(ctx)
		}
	}
	if err != nil {
		return false, err
	}
	return serves(ks.any, gvks) || ks.hidden(k.Group), nil
}
