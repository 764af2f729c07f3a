package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/aairegion"
	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/cluster"
	"github.com/multicloud-k8s/k8splugin/src/kafka"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/store/leader"
)

// The values of --aai-regions.
const (
	aaiRegionsOff      = "off"
	aaiRegionsOnDemand = "on-demand"
	aaiRegionsPoll     = "poll"
)

// aaiRegionSettings are the settings of cloud regions that are imported from A&AI.
type aaiRegionSettings struct {
	Mode     string
	Period   time.Duration
	Types    string
	Secrets  string
	Insecure bool
	Prefixes bool
	Group    string
}

// flags defines the flags of the settings.
func (s *aaiRegionSettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Mode, "aai-regions", aaiRegionsOnDemand, "cloud regions that are imported from A&AI if --aai-url is set: off, on-demand (those that requests name) or poll (all Kubernetes clusters)")
	flags.DurationVar(&s.Period, "aai-poll", 10*time.Minute, "interval between comparisons of the imported cloud regions with A&AI")
	flags.StringVar(&s.Types, "aai-region-types", "k8s", "comma-separated cloud types of A&AI that are Kubernetes clusters")
	flags.StringVar(&s.Secrets, "aai-region-secrets", "", "folder of the kubeconfigs that A&AI refers to by name: NAME, or NAME/kubeconfig as in a mounted Secret")
	flags.BoolVar(&s.Insecure, "aai-region-insecure", false, "accept tokens from A&AI with ssl-insecure, for which the cluster's certificate is not verified")
	flags.StringVar(&s.Group, "aai-events-group", "", "group of Kafka that receives A&AI's events from --kafka-brokers, so that imported cloud regions follow A&AI at once (default: no events)")
	flags.BoolVar(&s.Prefixes, "onap-prefixes", true, "accept the paths of ONAP's broker and of MSB: /api/multicloud and /api/multicloud-k8s, each with /v0 and /v1")
}

func (s *aaiRegionSettings) validate(url string, k kafkaSettings, wrong func(name, format string, args ...any)) {
	switch s.Mode {
	case aaiRegionsOff, aaiRegionsOnDemand, aaiRegionsPoll:
	default:
		wrong("aai-regions", "must be off, on-demand or poll, got %q", s.Mode)
	}
	if s.Period < time.Second || s.Period > 24*time.Hour {
		wrong("aai-poll", "must be between 1s and 24h, got %s", s.Period)
	}
	if url == "" || s.Mode == aaiRegionsOff {
		return
	}
	if len(listed(s.Types)) == 0 {
		wrong("aai-region-types", "must not be empty")
	}
	if s.Secrets != "" {
		if info, err := os.Stat(s.Secrets); err != nil || !info.IsDir() {
			wrong("aai-region-secrets", "must be a folder, got %q", s.Secrets)
		}
	}
	if s.Group == "" {
		return
	}
	if len(listed(k.Brokers)) == 0 {
		wrong("kafka-brokers", "is required with --aai-events-group")
	}
	k.validate(wrong)
}

// importRegions creates the importer of cloud regions, if A&AI is used.
func (s *service) importRegions(cfg Config, db *secureStore, obs observability) error {
	set := cfg.AAIRegions
	if s.aai == nil || set.Mode == aaiRegionsOff {
		return nil
	}
	group, err := leader.New(leader.Config{
		KV: db.kv, Prefix: "aairegions/", Work: "import of cloud regions", NewID: newID, Logger: obs.log, Lease: cfg.Lease, Sole: db.db.sole,
	})
	if err != nil {
		return err
	}
	events, err := set.events(cfg.SDC.Kafka, db.member("aai"), obs.log)
	if err != nil {
		return err
	}
	s.imports, err = aairegion.New(aairegion.Config{
		Inventory: s.aai, Regions: s.regions(), Lead: group.Run, Logger: obs.log,
		Rules:      aairegion.Rules{Types: listed(set.Types), Secrets: set.Secrets, Insecure: set.Insecure, Parse: cluster.Parse, Check: s.pool.Check},
		NewTenants: cfg.AAI.Tenants, All: set.Mode == aaiRegionsPoll, Period: set.Period, Events: events, Source: cfg.AAI.AppID,
		Observe: func(r aairegion.Result) { obs.metrics.RegionImported(string(r)) },
	})
	return err
}

// events returns how the events of A&AI are received; nil if they are not.
func (s *aaiRegionSettings) events(k kafkaSettings, member string, log *slog.Logger) (func(context.Context, func(context.Context, []byte) error) error, error) {
	if s.Group == "" {
		return nil, nil
	}
	access, err := k.access(log)
	if err != nil {
		return nil, err
	}
	config := k.config(access, member)
	config.Brokers, config.Group, config.ClientID, config.Topics = listed(k.Brokers), s.Group, "k8splugin", []string{aai.EventTopic}
	return func(ctx context.Context, handle func(context.Context, []byte) error) error {
		client, err := kafka.Open(config)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Receive(ctx, func(ctx context.Context, m kafka.Message) error { return handle(ctx, m.Value) })
	}, nil
}

// followRegions keeps the imported regions up to date.
func (s *service) followRegions(ctx context.Context) error {
	if s.imports == nil {
		return nil
	}
	return s.imports.Run(ctx)
}

// regionImports returns the importer, or a nil interface if regions are not imported.
func (s *service) regionImports() access.RegionImports {
	if s.imports == nil {
		return nil
	}
	return s.imports
}

// rejected has the credentials of a region read again that rejects them.
func (s *service) rejected(region string, access nf.Access) {
	s.workloads.Rejected(region, access)
	if s.imports != nil {
		s.imports.Rejected(region, access)
	}
}

// reachable returns the regions that the service has an access to.
func (s *service) reachable(ctx context.Context) ([]nf.Region, error) {
	all, err := s.catalog.Regions(ctx)
	var out []nf.Region
	for _, r := range all {
		if r.NoAccess() == "" {
			out = append(out, r)
		}
	}
	return out, err
}

// open opens the cluster of a region.
func open(pool *cluster.Pool, region nf.Region) (*cluster.Cluster, error) {
	switch why := region.NoAccess(); {
	case region.Type == nf.OpenStackRegion:
		return nil, nf.E(nf.Unsupported, "open", "cloud region "+region.ID, noAccessError(why))
	case why != "":
		return nil, &nf.Error{Kind: nf.Unreachable, Op: "open", Subject: "cloud region " + region.ID, Reason: nf.ReasonNoAccess, Err: noAccessError(why)}
	}
	return pool.Open(region.ID, region.Access)
}

// noAccessError is why the service has no access to a region.
type noAccessError string

// Error returns the reason.
func (e noAccessError) Error() string { return string(e) }
