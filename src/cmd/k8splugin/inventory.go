package main

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aaisource"
	"github.com/multicloud-k8s/k8splugin/src/aaisync"
	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/native"
	"github.com/multicloud-k8s/k8splugin/src/operation"
)

// inventory keeps A&AI up to date, and knows what it has. A nil *inventory does nothing.
type inventory struct {
	source *aaisource.Source
	keeper *aaisync.Keeper
}

// inventoryKeeper creates the inventory, if A&AI is written.
func (c Config) inventoryKeeper(s *service, db *secureStore, obs observability) (*inventory, error) {
	if s.aai == nil || !c.AAI.Write {
		return nil, nil
	}
	written, err := c.AAI.written()
	if err != nil {
		return nil, err
	}
	f := facts{engine: s.engine, service: s}
	source, err := aaisource.New(aaisource.Config{
		Instances: f, Networks: networkFacts{s}, Regions: f, Written: written, Every: c.AAI.Interval, Logger: obs.log,
		Scheme: aai.Scheme{Owner: c.AAI.AppID, URL: strings.TrimSuffix(c.AAI.Service, "/")},
	})
	if err != nil {
		return nil, err
	}
	keeper, err := aaisync.New(aaisync.Config{
		KV: db.kv, Source: source, Instances: source, Target: c.AAI.writer(s.aai), NewID: newID, Logger: obs.log,
		Lease: c.Lease, Sole: db.db.sole, Parallel: c.AAI.Parallel, Scan: c.AAI.Interval, Verify: c.AAI.Sweep,
	})
	if err != nil {
		return nil, err
	}
	return &inventory{source, keeper}, nil
}

func (i *inventory) run(ctx context.Context) error {
	if i == nil {
		return nil
	}
	return i.keeper.Run(ctx)
}

// touch says that an operation on a subject has ended, or that a region was registered.
func (i *inventory) touch(subject nf.Subject) {
	switch {
	case i == nil:
	case subject.Kind == nf.InstanceSubject:
		i.keeper.Touch(aaisource.InstanceID(subject.ID))
	case subject.Kind == nf.NetworkSubject:
		i.keeper.Touch(aaisource.NetworkID(subject.ID))
	case subject.Kind == nf.RegionSubject:
		i.keeper.Touch(aaisource.RegionID(subject.ID))
	}
}

// counts returns the number of subjects by state. It is empty unless this replica writes.
func (i *inventory) counts() map[nf.ListingState]int {
	if i == nil {
		return nil
	}
	return i.keeper.Counts()
}

// listedMeter also tells the inventory of operations that have ended.
type listedMeter struct {
	operation.Meter

	of *service
}

// Finished implements operation.Meter.
func (m listedMeter) Finished(op nf.Operation) {
	m.Meter.Finished(op)
	m.of.inventory.touch(op.Subject)
}

// directory returns the directory of the engine; nil: none. The inventory needs the
// engine, so it does not exist yet.
func (s *aaiSettings) directory(of *service) lifecycle.Directory {
	if s.URL == "" || !s.Write {
		return nil // not a directory without an inventory
	}
	return directory{of}
}

type directory struct{ of *service }

// Gone implements lifecycle.Directory.
func (d directory) Gone(ctx context.Context, instance string) bool {
	return d.of.inventory.keeper.Gone(ctx, aaisource.InstanceID(instance))
}

// listings returns the guarded listings; nil: A&AI is not written.
func (s *service) listings(guarded *access.Guarded, networks access.Shared) native.Inventory {
	if s.inventory == nil {
		return nil // not a guard of nothing
	}
	return access.NewInventory(guarded, networks, s.inventory)
}

var _ access.InventoryKeeper = (*inventory)(nil)

// Listings implements access.InventoryKeeper.
func (i *inventory) Listings(ctx context.Context) iter.Seq2[nf.Listing, error] {
	return func(yield func(nf.Listing, error) bool) {
		for s, err := range i.keeper.States(ctx) {
			if !yield(listingOf(s), err) || err != nil {
				return
			}
		}
		for l, err := range i.keeper.Orphans(ctx) {
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// Listing implements access.InventoryKeeper.
func (i *inventory) Listing(ctx context.Context, in nf.Instance) (nf.Listing, error) {
	s, err := i.keeper.State(ctx, aaisource.InstanceID(in.ID))
	if nf.KindOf(err) != nf.NotFound {
		return listingOf(s), err
	}
	why, err := i.source.Lacking(ctx, in)
	return nf.Listing{Subject: nf.Subject{Kind: nf.InstanceSubject, ID: in.ID}, State: nf.ListingOff, Reason: why}, err
}

// Relist implements access.InventoryKeeper.
func (i *inventory) Relist(ctx context.Context, in nf.Instance) (nf.Listing, error) {
	l, err := i.Listing(ctx, in)
	if err != nil {
		return l, err
	}
	if l.State == nf.ListingOff {
		return l, nf.E(nf.Conflict, "compare with A&AI", "VNF instance "+in.ID, errors.New(l.Reason))
	}
	return l, i.keeper.Refresh(ctx, aaisource.InstanceID(in.ID))
}

func listingOf(s aaisync.State) nf.Listing {
	return nf.Listing{
		Subject: aaisource.SubjectOf(s.ID), State: s.Condition, Reason: s.Reason, Since: s.Since, Retry: s.Retry,
		Missing: s.Missing, Rejected: s.Parked, Objects: slices.Sorted(maps.Keys(s.Objects)),
		Asked: s.Asked, Pending: s.Pending,
	}
}

// facts is what A&AI is told of instances and their regions.
type facts struct {
	engine  *lifecycle.Engine
	service *service
}

var (
	_ aaisource.Instances = facts{}
	_ aaisource.Regions   = facts{}
	_ aaisource.Networks  = networkFacts{}
)

// Instances implements aaisource.Instances.
func (f facts) Instances(ctx context.Context) ([]nf.Instance, error) { return f.engine.Instances(ctx) }

// Instance implements aaisource.Instances.
func (f facts) Instance(ctx context.Context, id string) (nf.Instance, error) {
	return f.engine.Instance(ctx, id)
}

// Region implements aaisource.Instances.
func (f facts) Region(ctx context.Context, id string) (nf.Region, error) {
	return f.service.catalog.Region(ctx, id)
}

// Objects implements aaisource.Regions.
func (f facts) Objects(ctx context.Context, in nf.Instance, refs []nf.Ref) ([]map[string]any, error) {
	return live{f.engine, opened(f.service.catalog, f.service.pool)}.Objects(ctx, in, refs)
}

// Pods implements aaisource.Regions.
func (f facts) Pods(ctx context.Context, instance string) ([]nf.Pod, error) {
	return f.engine.Pods(ctx, instance)
}

// Census implements aaisource.Regions.
func (f facts) Census(ctx context.Context, region string, kind nf.Ref) iter.Seq2[aaisource.Mark, error] {
	return func(yield func(aaisource.Mark, error) bool) {
		c, err := opened(f.service.catalog, f.service.pool)(ctx, region)
		if err != nil {
			yield(aaisource.Mark{}, err)
			return
		}
		for m, err := range c.Census(ctx, kind) {
			if !yield(aaisource.Mark(m), err) {
				return
			}
		}
	}
}

// networkFacts is what A&AI is told of networks.
type networkFacts struct{ of *service }

// From implements aaisource.Networks.
func (n networkFacts) From(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Network, error] {
	return n.of.networks.From(ctx, from)
}

// Get implements aaisource.Networks.
func (n networkFacts) Get(ctx context.Context, id string) (nf.Network, error) {
	return n.of.networks.Get(ctx, id)
}

// Layout implements aaisource.Networks.
func (n networkFacts) Layout(net nf.Network) (nf.Layout, error) { return networkDrivers().Layout(net) }
