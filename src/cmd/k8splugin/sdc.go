package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/bundle"
	"github.com/multicloud-k8s/k8splugin/src/catalog"
	"github.com/multicloud-k8s/k8splugin/src/distribution"
	"github.com/multicloud-k8s/k8splugin/src/kafka"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound/onap"
	"github.com/multicloud-k8s/k8splugin/src/peer"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
	"github.com/multicloud-k8s/k8splugin/src/store/leader"
)

// sdcComponent is the name of the service in status messages.
const sdcComponent = "multicloud"

// sdcParts are the parts that use SDC. Without SDC, they do nothing.
type sdcParts struct {
	tls    *tls.Config          // of connections to SDC; nil: the default of a peer
	client *sdc.Client          // nil: SDC is not used
	charts render.Renderer      // checks charts
	finder *distribution.Finder // nil: nothing is fetched on demand
	runner *distribution.Runner // nil: notifications are not followed

	comparer *distribution.Comparer // nil: nothing is compared with SDC
}

// start creates the parts that the mode needs. It sends nothing.
func (p *sdcParts) start(cfg Config, bundles *bundle.Bundles, packages *catalog.Catalog, db *secureStore, obs observability) error {
	s := cfg.SDC
	if !s.used() {
		return nil
	}
	server, err := peer.New(peer.Config{Name: "SDC", Files: s.Files, TLS: p.tls, Logger: obs.log})
	if err != nil {
		return err
	}
	p.client, err = sdc.NewClient(sdc.Config{
		URL: s.URL, Consumer: s.Consumer, Credentials: server.Credentials, Transport: server.Transport(), NewID: newID, Limit: cfg.MaxPackage,
	})
	if err != nil {
		return err
	}
	to := definitions{bundle.NewDistributed(bundles), packages, p.charts}
	if p.finder, err = distribution.NewFinder(distribution.FinderConfig{Services: p.client, Definitions: to, Logger: obs.log}); err != nil {
		return err
	}
	if s.Mode != sdcDistribution {
		return nil
	}
	if err := p.compare(cfg, to, db, obs); err != nil {
		return err
	}
	statuses := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8splugin_sdc_statuses_total", Help: "Status messages that were sent to SDC, by status.",
	}, []string{"status"})
	if err := obs.registry.Register(statuses); err != nil {
		return fmt.Errorf("cannot register the metrics of SDC: %w", err)
	}
	access, err := s.Kafka.access(obs.log)
	if err != nil {
		return err
	}
	deletions := "SDC-DISTR-DELETE-TOPIC-" + strings.ToUpper(s.Environment)
	p.runner, err = distribution.New(distribution.Config{
		KV: db.kv, Catalog: p.client, Definitions: to, Consumer: s.Consumer, Component: sdcComponent, Deletions: deletions, Logger: obs.log,
		Observe: func(status string) { statuses.WithLabelValues(status).Inc() },
		Open: func(topics sdc.KafkaTopics) (distribution.Bus, error) {
			k := s.Kafka.config(access, db.member("sdc"))
			k.Brokers, k.Group, k.ClientID, k.Topics = listed(s.Kafka.Brokers), s.Group, s.Consumer, []string{topics.Notification, deletions}
			if len(k.Brokers) == 0 {
				k.Brokers = listed(topics.Brokers)
			}
			return kafka.Open(k)
		},
	})
	return err
}

// compare creates the comparer.
func (p *sdcParts) compare(cfg Config, to definitions, db *secureStore, obs observability) error {
	group, err := leader.New(leader.Config{
		KV: db.kv, Prefix: "sdc/", Work: "comparison with SDC", NewID: newID, Logger: obs.log, Lease: cfg.Lease, Sole: db.db.sole,
	})
	if err != nil {
		return err
	}
	p.comparer, err = distribution.NewComparer(distribution.ComparerConfig{
		KV: db.kv, Catalog: p.client, Onboarded: to, Lead: group.Run, Period: cfg.SDC.Poll, Logger: obs.log,
	})
	return err
}

// run runs the parts until the context ends.
func (p *sdcParts) run(ctx context.Context) error {
	var group errgroup.Group
	if p.finder != nil {
		group.Go(func() error { return p.finder.Run(ctx) })
	}
	if p.runner != nil {
		group.Go(func() error { return p.runner.Run(ctx) })
	}
	if p.comparer != nil {
		group.Go(func() error { return p.comparer.Run(ctx) })
	}
	return group.Wait()
}

// composer returns a composer that fetches unknown definitions, if SDC is used.
func (p *sdcParts) composer(bundles *bundle.Bundles) onap.Composer {
	if p.finder == nil {
		return bundles
	}
	return composeOnDemand{bundles, onDemand{bundles, p.finder}}
}

// writer returns a writer that fetches unknown definitions, if SDC is used.
func (p *sdcParts) writer(bundles *bundle.Bundles) onap.BundleWriter {
	if p.finder == nil {
		return bundles
	}
	return writeOnDemand{bundles, onDemand{bundles, p.finder}}
}

// onDemand fetches definitions from SDC.
type onDemand struct {
	bundles *bundle.Bundles
	finder  *distribution.Finder
}

// fetch returns nil if it has fetched a definition that was unknown when something of
// it was missing. It returns missing if the definition is known, or SDC has none.
func (o onDemand) fetch(ctx context.Context, name, version string, missing error) error {
	if nf.KindOf(missing) != nf.NotFound {
		return missing
	}
	if _, err := o.bundles.Definition(ctx, name, version); nf.KindOf(err) != nf.NotFound {
		return missing
	}
	err := o.finder.Find(ctx, name, version)
	if err != nil && nf.KindOf(err) == nf.NotFound {
		return missing
	}
	return err
}

// composeOnDemand composes packages of definitions that it fetches from SDC.
type composeOnDemand struct {
	onap.Composer

	demand onDemand
}

// Profile implements onap.Composer. A request for an instance reads its profile first.
func (o composeOnDemand) Profile(ctx context.Context, k bundle.Key) (bundle.Profile, error) {
	p, err := o.Composer.Profile(ctx, k)
	if err == nil {
		return p, nil
	}
	if err := o.demand.fetch(ctx, k.Name, k.Version, err); err != nil {
		return p, err
	}
	return o.Composer.Profile(ctx, k)
}

// writeOnDemand creates profiles of definitions that it fetches from SDC.
type writeOnDemand struct {
	onap.BundleWriter

	demand onDemand
}

// CreateProfile implements onap.BundleWriter.
func (o writeOnDemand) CreateProfile(ctx context.Context, p bundle.Profile) (bundle.Profile, error) {
	created, err := o.BundleWriter.CreateProfile(ctx, p)
	if err == nil {
		return created, nil
	}
	if err := o.demand.fetch(ctx, p.Definition, p.Version, err); err != nil {
		return created, err
	}
	return o.BundleWriter.CreateProfile(ctx, p)
}

// definitions stores definitions of SDC as ONAP's resource bundles.
type definitions struct {
	bundles  bundle.Distributed
	packages *catalog.Catalog
	charts   render.Renderer
}

var _ distribution.Onboarded = definitions{}

// PutDefinition implements distribution.Definitions.
func (d definitions) PutDefinition(ctx context.Context, of distribution.Definition, chart io.Reader) (bool, error) {
	return d.bundles.PutDefinition(ctx, bundle.Definition{
		Name: of.Name, Version: of.Version, Description: of.Description, Labels: of.Labels, Origin: &bundle.Origin{Service: of.Service, Models: []string{of.Model}},
	}, chart, func(ctx context.Context, files render.Files) error {
		if _, err := d.charts.Check(ctx, files); err != nil {
			return fmt.Errorf("cannot use the chart: %w", err)
		}
		return nil
	})
}

// MarkDeleted implements distribution.Definitions. It also marks packages.
func (d definitions) MarkDeleted(ctx context.Context, design string) (int, error) {
	n, err := d.bundles.MarkDeleted(ctx, design)
	if err != nil {
		return n, err
	}
	more, err := d.packages.Withdraw(ctx, design)
	return n + more, err
}

// Designs implements distribution.Onboarded.
func (d definitions) Designs(ctx context.Context) ([]string, error) {
	out, err := d.bundles.Designs(ctx)
	if err != nil {
		return nil, err
	}
	more, err := d.packages.Designs(ctx)
	out = slices.Sorted(slices.Values(append(out, more...)))
	return slices.Compact(out), err
}
