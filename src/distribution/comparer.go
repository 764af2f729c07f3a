package distribution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/sdc"
	"github.com/multicloud-k8s/k8splugin/src/store"
)

const defaultPeriod = time.Hour // between two comparisons

// Designs reads the services and resources that SDC has.
type Designs interface {
	Services
	// Resource returns the metadata of a resource.
	Resource(ctx context.Context, uuid string) (sdc.Metadata, error)
}

// Onboarded is what the service has of SDC.
type Onboarded interface {
	Definitions
	// Designs returns the UUIDs of the versions of services and resources that
	// something was made of, without those that are marked as deleted.
	Designs(ctx context.Context) ([]string, error)
}

// ComparerConfig configures a Comparer. KV, Catalog, Onboarded and Lead are required.
type ComparerConfig struct {
	KV        store.KV
	Catalog   Designs
	Onboarded Onboarded

	// Lead calls work while this replica is the one that compares, until the context ends.
	Lead func(ctx context.Context, work func(context.Context)) error

	Period time.Duration // between two comparisons; default 1 h
	Every  time.Duration // between two services that a comparison reads; default 1 s
	Clock  func() time.Time
	Logger *slog.Logger
}

// Comparer compares SDC's distributed services with what the service has of them, when it
// starts and then once per period: SDC's Kafka keeps notifications for a few hours only.
type Comparer struct {
	cfg      ComparerConfig
	deployer deployer
	done     store.Table[compared]
}

// compared is the record of a service of SDC that needs no more work.
type compared struct {
	ID     string    `json:"id"`     // UUID of its version
	Digest string    `json:"digest"` // of its artifacts
	Time   time.Time `json:"time"`
}

// NewComparer returns a comparer. It reads nothing yet.
func NewComparer(cfg ComparerConfig) (*Comparer, error) {
	if cfg.KV == nil || cfg.Catalog == nil || cfg.Onboarded == nil || cfg.Lead == nil {
		return nil, errors.New("cannot create a comparer with SDC: KV, Catalog, Onboarded and Lead are required")
	}
	if cfg.Period <= 0 {
		cfg.Period = defaultPeriod
	}
	if cfg.Every <= 0 {
		cfg.Every = time.Second
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Comparer{cfg: cfg, deployer: deployer{cfg.Catalog, cfg.Onboarded, firstPause}, done: store.NewTable[compared](cfg.KV, "sdc/services/", "service of SDC")}, nil
}

// Run compares until the context ends.
func (c *Comparer) Run(ctx context.Context) error { return c.cfg.Lead(ctx, c.work) }

func (c *Comparer) work(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		pause := c.cfg.Period
		if err := c.compare(ctx); err != nil && ctx.Err() == nil {
			pause = delay.Doubled(firstPause, longestPause, failures)
			failures++
			c.cfg.Logger.WarnContext(ctx, "failed to compare with SDC; will retry", "error", err, "pause_s", pause.Seconds())
		} else {
			failures = 0
		}
		delay.For(ctx, pause, nil)
	}
}

// compare deploys services that are new or have changed, and marks what SDC no longer has.
func (c *Comparer) compare(ctx context.Context) error {
	services, err := c.cfg.Catalog.Distributed(ctx)
	if err != nil {
		return err
	}
	records, err := c.done.List(ctx, "")
	if err != nil {
		return err
	}
	digests := make(map[string]string, len(records))
	for _, r := range records {
		digests[r.ID] = r.Digest
	}
	isListed := make(map[string]bool, len(services))
	for i, s := range services {
		if i > 0 {
			delay.For(ctx, c.cfg.Every, nil)
		}
		isListed[s.UUID] = true
		if err := c.service(ctx, s.UUID, digests[s.UUID]); err != nil {
			return err
		}
	}
	for id := range digests { // one that is distributed again is compared again
		if isListed[id] {
			continue
		}
		if err := nf.IgnoreNotFound(c.done.Delete(ctx, id)); err != nil {
			return err
		}
	}
	return c.markDeleted(ctx, isListed)
}

// service deploys a service, unless its artifacts have the digest. One that cannot be
// deployed is logged, and tried again when it has changed.
func (c *Comparer) service(ctx context.Context, uuid, digest string) error {
	m, err := c.cfg.Catalog.Service(ctx, uuid)
	if err != nil {
		return nf.IgnoreNotFound(err) // it was deleted in the meantime
	}
	now := digestOf(m)
	if now == digest {
		return nil
	}
	all := m.All()
	changed, failed := false, error(nil)
	for _, resource := range m.Resources {
		if resource.Type != sdc.ResourceVF && resource.Type != "" {
			continue
		}
		results, err := c.deployer.deploy(ctx, uuid, resource, all)
		if err != nil {
			return err
		}
		for _, res := range results {
			for _, err := range []error{res.download, res.deployed} {
				if nf.KindOf(err) == nf.Unreachable { // SDC or the store
					return err
				}
			}
			changed, failed = changed || res.changed, errors.Join(failed, res.download, res.deployed)
		}
	}
	switch {
	case failed != nil:
		c.cfg.Logger.WarnContext(ctx, "failed to deploy a service of SDC; will retry when it has changed", "service", uuid, "name", m.Name, "error", failed)
	case changed:
		c.cfg.Logger.InfoContext(ctx, "service of SDC deployed, whose notification was missed", "service", uuid, "name", m.Name)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.done.Put(ctx, uuid, compared{ID: uuid, Digest: now, Time: c.cfg.Clock().UTC()})
}

// digestOf identifies the artifacts of a service.
func digestOf(m sdc.Metadata) string {
	sum := sha256.New()
	for _, a := range m.All() {
		fmt.Fprintf(sum, "%q %q %q\n", a.UUID, a.URL, a.Checksum)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// markDeleted marks what was made of services and resources that SDC no longer has. One
// that is not distributed any longer still exists.
func (c *Comparer) markDeleted(ctx context.Context, isListed map[string]bool) error {
	designs, err := c.cfg.Onboarded.Designs(ctx)
	if err != nil {
		return err
	}
	for _, uuid := range slices.Sorted(slices.Values(designs)) {
		if isListed[uuid] {
			continue
		}
		delay.For(ctx, c.cfg.Every, nil)
		exists, err := c.exists(ctx, uuid)
		if err != nil {
			return err
		}
		if exists {
			continue
		}
		n, err := c.cfg.Onboarded.MarkDeleted(ctx, uuid)
		if err != nil {
			return err
		}
		c.cfg.Logger.InfoContext(ctx, "service or resource deleted in SDC; what was made of it stays", "uuid", uuid, "marked", n)
	}
	return nil
}

func (c *Comparer) exists(ctx context.Context, uuid string) (bool, error) {
	_, err := c.cfg.Catalog.Service(ctx, uuid)
	if nf.KindOf(err) == nf.NotFound {
		_, err = c.cfg.Catalog.Resource(ctx, uuid)
	}
	return err == nil, nf.IgnoreNotFound(err)
}
