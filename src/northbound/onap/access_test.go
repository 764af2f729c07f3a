package onap_test

import (
	"context"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
)

// permit returns an error if the caller does not have a permission.
type permit func(ctx context.Context, p nf.Permission, s nf.Scope, names ...string) error

// guarded gives bundles and connections to callers that the permit does not deny.
type guarded struct {
	may     permit
	bundles *bundle.Bundles
	regions onap.Regions
}

var (
	_ onap.Bundles     = guarded{}
	_ onap.Connections = guarded{}
)

func (g guarded) Read(ctx context.Context, names ...string) (onap.BundleReader, error) {
	return g.bundles, g.may(ctx, nf.ReadPackage, nf.Scope{Project: nf.DefaultProject}, names...)
}

func (g guarded) Write(ctx context.Context, names ...string) (onap.BundleWriter, error) {
	return g.bundles, g.may(ctx, nf.WritePackage, nf.Scope{Project: nf.DefaultProject}, names...)
}

func (g guarded) ForNew(ctx context.Context, project, region string) (onap.Composer, error) {
	return g.bundles, g.may(ctx, nf.CreateInstance, nf.Scope{Project: project, Region: region})
}

func (g guarded) ForChange(ctx context.Context, in nf.Instance) (onap.Composer, error) {
	return g.bundles, g.may(ctx, nf.ChangeInstance, nf.Scope{Region: in.Region}, in.ID)
}

func (g guarded) Connection(ctx context.Context, id string) (nf.Region, bundle.Connection, error) {
	r, err := g.regions.Region(ctx, id)
	if err != nil {
		return r, bundle.Connection{}, err
	}
	c, err := g.bundles.Connection(ctx, r)
	if g.may(ctx, nf.WriteRegion, nf.Scope{Region: id}, id) != nil {
		r.Access, c = nf.Access{}, c.Masked()
	}
	return r, c, nf.IgnoreNotFound(err)
}

func (g guarded) Put(ctx context.Context, _ string, c bundle.Connection) error {
	return g.bundles.PutConnection(ctx, c)
}

func (g guarded) Remove(ctx context.Context, region string) error {
	return g.bundles.RemoveConnection(ctx, region)
}

// kept gives what is kept of instances to callers that the permit does not deny.
type kept[R, W any] struct {
	may    permit
	reader R
	writer W
}

func (k kept[R, W]) Read(ctx context.Context, in nf.Instance) (R, error) {
	return k.reader, k.may(ctx, nf.ReadInstance, nf.Scope{Region: in.Region}, in.ID)
}

func (k kept[R, W]) Change(ctx context.Context, in nf.Instance) (W, error) {
	return k.writer, k.may(ctx, nf.ChangeInstance, nf.Scope{Region: in.Region}, in.ID)
}

// access sets the fields of a configuration that give access to what is stored.
func (p permit) access(cfg *onap.Config, b *bundle.Bundles, s onap.SubscriptionWriter) {
	g, records := guarded{p, b, cfg.Regions}, b.InstanceRecords()
	reader, _ := s.(onap.SubscriptionReader)
	cfg.Bundles, cfg.Connections, cfg.Aliases = g, g, records
	cfg.Records = kept[onap.RecordReader, onap.RecordWriter]{p, records, records}
	cfg.Subscriptions = kept[onap.SubscriptionReader, onap.SubscriptionWriter]{p, reader, s}
}
