package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/access"
	"github.com/multicloud-k8s/k8splugin/src/health"
	"github.com/multicloud-k8s/k8splugin/src/lifecycle"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnffm"
	"github.com/multicloud-k8s/k8splugin/src/northbound/vnfsubscription"
	"github.com/multicloud-k8s/k8splugin/src/outbox"
	"github.com/multicloud-k8s/k8splugin/src/peer"
	"github.com/multicloud-k8s/k8splugin/src/sol003"
	"github.com/multicloud-k8s/k8splugin/src/sol003/fault"
	vnfnotify "github.com/multicloud-k8s/k8splugin/src/sol003/notify"
	"github.com/multicloud-k8s/k8splugin/src/sol003/performance"
)

// vnfNotifySettings are the settings of notifications to subscribers of SOL003.
type vnfNotifySettings struct {
	Endpoint string
	Files    peer.Files
	Test     bool

	FaultEvery, FaultLasting time.Duration // see fault.Config; they have no flags
}

// flags defines the flags of the settings.
func (s *vnfNotifySettings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Endpoint, "vnf-endpoint", "", "URL under which subscribers of SOL003 reach the service; it begins the links in notifications, alarms, subscriptions, PM jobs and thresholds (default: links are paths)")
	flags.StringVar(&s.Files.CA, "vnf-callback-ca-file", "", "CA certificates that the callbacks of SOL003 and their token endpoints are verified with (default: those of the system); like the next two files, reloaded when it changes")
	flags.StringVar(&s.Files.Certificate, "vnf-callback-cert-file", "", "certificate that the service presents to callbacks of SOL003 whose subscription asks for one")
	flags.StringVar(&s.Files.Key, "vnf-callback-key-file", "", "private key of the certificate")
	flags.BoolVar(&s.Test, "vnf-callback-test", true, "reject a subscription of SOL003 whose callback does not answer a GET with 204 within 20 seconds")
}

func (s *vnfNotifySettings) validate(wrong func(name, format string, args ...any)) {
	if s.Endpoint != "" {
		if u := serverURL(s.Endpoint); u == nil || u.User != nil || u.RawQuery != "" || u.Path != "" {
			wrong("vnf-endpoint", "must begin with http:// or https://, and contain a host and no user, path or query")
		}
	}
	if (s.Files.Certificate == "") != (s.Files.Key == "") {
		wrong("vnf-callback-cert-file, vnf-callback-key-file", "must be set together")
	}
}

// vnfParts notify subscribers of SOL003, find the faults that they are notified of, and
// measure VNFs.
type vnfParts struct {
	notifier *vnfnotify.Notifier
	faults   *fault.Watcher
	meter    *performance.Meter
}

// notifyVNFs creates the parts that notify subscribers of SOL003.
func (s *service) notifyVNFs(cfg Config, db *secureStore, obs observability) error {
	hosts, err := cfg.callbackHosts()
	if err != nil {
		return err
	}
	s.vnfs.faults, err = fault.New(fault.Config{
		KV: db.kv, Source: wellBeing{s.engine, s.sol003, s.health}, NewID: newID, Logger: obs.log, Lease: cfg.Lease, Sole: db.db.sole,
		Every: cfg.VNFNotify.FaultEvery, Lasting: cfg.VNFNotify.FaultLasting,
	})
	if err != nil {
		return err
	}
	if err := s.measureVNFs(cfg, db, obs); err != nil {
		return err
	}
	callbacks, err := peer.New(peer.Config{Name: "the callbacks of SOL003", Files: cfg.VNFNotify.Files, Logger: obs.log})
	if err != nil {
		return err
	}
	s.vnfs.notifier, err = vnfnotify.New(vnfnotify.Config{
		Sources:  map[string]vnfnotify.Source{"occurrences": s.sol003, "alarms": s.vnfs.faults, "performance": s.vnfs.meter},
		Endpoint: cfg.VNFNotify.Endpoint, SkipTest: !cfg.VNFNotify.Test, TLS: callbacks.TLS, Certified: cfg.VNFNotify.Files.Certificate != "",
		Status: func(kind nf.Kind) int { return northbound.Status(nf.E(kind, "", "", nil)) },
		Config: outbox.Config{
			KV: db.kv, Hosts: hosts, Logger: obs.log, NewID: newID, Lease: cfg.Lease, Sole: db.db.sole,
			Observe: func(o outbox.Outcome) { obs.metrics.Notified(string(o)) },
		},
	})
	return err
}

// run finds faults, measures VNFs and notifies subscribers until the context ends.
func (p vnfParts) run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return p.faults.Run(ctx) })
	running.Go(func() error { return p.meter.Run(ctx) })
	running.Go(func() error { return p.notifier.Run(ctx) })
	if err := running.Wait(); err != nil {
		return fmt.Errorf("cannot notify subscribers of SOL003: %w", err)
	}
	return nil
}

// wellBeing provides the health of VNFs to the watcher of their faults.
type wellBeing struct {
	engine *lifecycle.Engine
	ledger *sol003.Manager
	health *health.Watcher
}

var _ fault.Source = wellBeing{}

// Unhealthy implements fault.Source.
func (w wellBeing) Unhealthy() []string { return w.health.Unhealthy() }

// Instance implements fault.Source.
func (w wellBeing) Instance(ctx context.Context, id string) (nf.Instance, error) {
	return w.engine.Instance(ctx, id)
}

// VNF implements fault.Source.
func (w wellBeing) VNF(ctx context.Context, id string) (nf.VNF, error) { return w.ledger.VNF(ctx, id) }

// InstanceHealth implements fault.Source.
func (w wellBeing) InstanceHealth(in nf.Instance) nf.InstanceHealth {
	return w.health.InstanceHealth(in)
}

// Pods implements fault.Source.
func (w wellBeing) Pods(ctx context.Context, id string) ([]nf.Pod, error) {
	return w.engine.Pods(ctx, id)
}

// vnfSubscriptionsAPI creates the API of SOL003's subscriptions.
func (s *service) vnfSubscriptionsAPI(cfg Config, _ *secureStore, _ observability, guarded *access.Guarded) (northbound.API, error) {
	return vnfsubscription.New(vnfsubscription.Config{
		Subscriptions: access.NewVNFSubscriptions(guarded, s.vnfs.notifier), Endpoint: cfg.VNFNotify.Endpoint,
	})
}

// vnfAlarmsAPI creates the API of SOL003's alarms.
func (s *service) vnfAlarmsAPI(cfg Config, _ *secureStore, _ observability, guarded *access.Guarded) (northbound.API, error) {
	return vnffm.New(vnffm.Config{Alarms: access.NewVNFAlarms(guarded, s.vnfs.faults), Endpoint: cfg.VNFNotify.Endpoint})
}
