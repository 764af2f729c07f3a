package bundle

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// Connection holds ONAP's additional data about the connection to a cloud
// region. The region itself holds the kubeconfig.
type Connection struct {
	Region     string              `json:"region"`
	Registered time.Time           `json:"registered,omitzero"` // creation time of the region; a later region of the same id differs in it
	Owner      string              `json:"owner"`
	Records    []map[string]string `json:"records,omitzero"` // free-form, each with a connectivity-record-name; nil and empty differ
}

func (c Connection) id() string { return join(c.Region) }

// Masked returns the connection with the secret fields of its records masked. A field is
// secret if its name sounds so.
func (c Connection) Masked() Connection {
	records, secrets := c.Records, render.SecretNames{"password": true, "private-key": true}
	if c.Records = nil; records != nil {
		c.Records = make([]map[string]string, len(records))
	}
	for i, record := range records {
		shown := maps.Clone(record)
		for name, value := range shown {
			if secrets.Has(name, value) {
				shown[name] = nf.Masked
			}
		}
		c.Records[i] = shown
	}
	return c
}

// PutConnection stores a connection and replaces the region's previous one.
func (b *Bundles) PutConnection(ctx context.Context, c Connection) error {
	if err := checkNames("keep", "the connection", [2]string{"cloud-region", c.Region}); err != nil {
		return err
	}
	return b.connections.Put(ctx, c.id(), c)
}

// of reports whether a connection belongs to a region, and not to an earlier
// one of the same id.
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

// RemoveConnection deletes the connection to a deleted region. It returns nil
// if there is none.
func (b *Bundles) RemoveConnection(ctx context.Context, region string) error {
	return nf.IgnoreNotFound(b.connections.Delete(ctx, join(region)))
}

// SweepConnections deletes the connections to regions that no longer exist.
// Region returns a region, or nf.NotFound.
func (b *Bundles) SweepConnections(ctx context.Context, region func(ctx context.Context, id string) (nf.Region, error)) error {
	for c, err := range b.connections.All(ctx, "") {
		if err != nil {
			return err
		}
		r, err := region(ctx, c.Region)
		if nf.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && c.of(r) {
			continue
		}
		if err := nf.IgnoreNotFound(b.connections.DeleteIf(ctx, c.id(), func(now Connection) error {
			if now.Registered.Equal(c.Registered) {
				return nil
			}
			return nf.E(nf.NotFound, "delete", "the connection", nil) // a new region of that id has been registered
		})); err != nil {
			return err
		}
	}
	return nil
}
