package bundle

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Connection is what ONAP keeps of the connection to a cloud region beside the
// kubeconfig, which the region itself has.
type Connection struct {
	Region  string              `json:"region"`
	Owner   string              `json:"owner"`
	Records []map[string]string `json:"records,omitzero"` // free-form, each with a connectivity-record-name; nil and empty are two values
}

func (c Connection) id() string { return join(c.Region) }

// PutConnection keeps a connection, in the place of what is known of that region.
func (b *Bundles) PutConnection(ctx context.Context, c Connection) error {
	if err := checkNames("keep", "the connection", [2]string{"cloud-region", c.Region}); err != nil {
		return err
	}
	return b.connections.Put(ctx, c.id(), c)
}

// Connection returns the connection to a region, or nf.NotFound.
func (b *Bundles) Connection(ctx context.Context, region string) (Connection, error) {
	return b.connections.Get(ctx, join(region))
}

// RemoveConnection forgets a connection. That it is not there is no error.
func (b *Bundles) RemoveConnection(ctx context.Context, region string) error {
	return nf.UnlessGone(b.connections.Delete(ctx, join(region)))
}
