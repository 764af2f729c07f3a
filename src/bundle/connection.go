package bundle

import (
	"context"
	"fmt"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Connection is what ONAP keeps of the connection to a cloud region beside the
// kubeconfig, which the region itself has.
type Connection struct {
	Region     string              `json:"region"`
	Registered time.Time           `json:"registered,omitzero"` // when the region was: it says nothing of another region of the same id
	Owner      string              `json:"owner"`
	Records    []map[string]string `json:"records,omitzero"` // free-form, each with a connectivity-record-name; nil and empty are two values
}

func (c Connection) id() string { return join(c.Region) }

// PutConnection keeps a connection, in the place of what is known of that region.
func (b *Bundles) PutConnection(ctx context.Context, c Connection) error {
	if err := checkNames("keep", "the connection", [2]string{"cloud-region", c.Region}); err != nil {
		return err
	}
	return b.connections.Put(ctx, c.id(), c)
}

// of reports whether a connection is that of a region, and not of a former one of
// the same id.
func (c Connection) of(r nf.Region) bool {
	return c.Registered.IsZero() || c.Registered.Equal(r.Created)
}

// Connection returns the connection to a region, or nf.NotFound.
func (b *Bundles) Connection(ctx context.Context, r nf.Region) (Connection, error) {
	c, err := b.connections.Get(ctx, join(r.ID))
	if err == nil && !c.of(r) {
		return Connection{}, nf.E(nf.NotFound, "get", fmt.Sprintf("connection %q", r.ID), nil)
	}
	return c, err
}

// RemoveConnection removes the connection to a region that is removed. That there
// is none is not an error.
func (b *Bundles) RemoveConnection(ctx context.Context, region string) error {
	return nf.UnlessGone(b.connections.Delete(ctx, join(region)))
}

// SweepConnections removes the connections to regions that are gone. Region
// returns a region, or nf.NotFound.
func (b *Bundles) SweepConnections(ctx context.Context, region func(ctx context.Context, id string) (nf.Region, error)) error {
	for c, err := range b.connections.All(ctx, "") {
		if err != nil {
			return err
		}
		r, err := region(ctx, c.Region)
		if nf.UnlessGone(err) != nil {
			return err
		}
		if err == nil && c.of(r) {
			continue
		}
		if err := nf.UnlessGone(b.connections.DeleteIf(ctx, c.id(), func(now Connection) error {
			if now.Registered.Equal(c.Registered) {
				return nil
			}
			return nf.E(nf.NotFound, "delete", "the connection", nil) // it is a new one
		})); err != nil {
			return err
		}
	}
	return nil
}
