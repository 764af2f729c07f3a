package aairegion

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/aai"
	"github.com/multicloud-k8s/k8splugin/src/delay"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Inventory reads cloud regions of A&AI. An aai.Client does.
type Inventory interface {
	// CloudRegion returns a cloud region with its systems. It returns nf.NotFound if A&AI
	// does not have it, and nf.Unreachable if it cannot be read.
	CloudRegion(ctx context.Context, owner, id string) (aai.CloudRegion, error)
	// CloudRegions returns the cloud regions with an id, or all if it is empty, without
	// their systems.
	CloudRegions(ctx context.Context, id string) ([]aai.CloudRegion, error)
	// Tenants returns the ids of the tenants of a cloud region.
	Tenants(ctx context.Context, owner, id string) ([]string, error)
}

var _ Inventory = (*aai.Client)(nil)

// Regions are the registered cloud regions.
type Regions interface {
	// Region returns a region, or nf.NotFound.
	Region(ctx context.Context, id string) (nf.Region, error)
	RegionsFrom(ctx context.Context, from nf.Cursor) iter.Seq2[nf.Region, error]
	// Enlist stores a region without connecting to its cluster. It returns nf.Exists if
	// the id is taken.
	Enlist(ctx context.Context, r nf.Region) (nf.Region, error)
	// UpdateRegion edits a region. It probes a new access first.
	UpdateRegion(ctx context.Context, id string, edit func(*nf.Region) error) (nf.Region, error)
}

// Result is the result of one comparison of a region with A&AI that changed something, or
// failed.
type Result string

// The results.
const (
	Imported      Result = "imported"       // with an access
	Updated       Result = "updated"        // the access, or where it is
	WithoutAccess Result = "without_access" // A&AI has no access that can be used
	Vanished      Result = "vanished"       // A&AI no longer has the region
	Failed        Result = "failed"         // A&AI cannot be read, or the new access does not work
)

// Results returns all results.
func Results() []Result { return []Result{Imported, Updated, WithoutAccess, Vanished, Failed} }

// Config configures an Importer. Inventory, Regions, Rules and Lead are required.
type Config struct {
	Inventory Inventory
	Regions   Regions
	Rules     Rules

	// Lead calls work while this replica is the one that polls, until the context ends.
	Lead func(ctx context.Context, work func(context.Context)) error

	// Events passes the messages of A&AI's topic of events to handle, and commits each
	// when handle returns nil. It returns when the context ends, or the connection; nil:
	// events are not followed.
	Events func(ctx context.Context, handle func(context.Context, []byte) error) error
	Source string // of events that are not heeded: the service's own name in A&AI

	NewTenants bool // a region without a tenant gets the name of one that is created when it is needed

	All     bool             // import every cluster that A&AI has, not only those that requests name
	Period  time.Duration    // between two comparisons of an imported region with A&AI; default 10 minutes
	Observe func(Result)     // must return quickly; default: none
	Logger  *slog.Logger     // default: discard
	Clock   func() time.Time // default time.Now
}

func (c *Config) complete() error {
	if c.Inventory == nil || c.Regions == nil || c.Rules.Parse == nil || c.Rules.Check == nil || c.Lead == nil {
		return errors.New("cannot create an importer of cloud regions: Inventory, Regions, Rules and Lead are required")
	}
	if c.Observe == nil {
		c.Observe = func(Result) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Period <= 0 {
		c.Period = defaultPeriod
	}
	return nil
}

const (
	defaultPeriod = 10 * time.Minute
	missPeriod    = 10 * time.Second // that A&AI is not asked again for a region that it does not have
	maxMisses     = 1000
)

// Importer imports cloud regions of A&AI. It is safe for concurrent use.
type Importer struct {
	cfg      Config
	rejected rejections

	mu     sync.Mutex
	misses map[string]time.Time // when A&AI did not have a region, by owner and id
}

// New returns an importer. It reads nothing yet.
func New(cfg Config) (*Importer, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Importer{cfg: cfg, misses: map[string]time.Time{}, rejected: rejections{clock: cfg.Clock, wake: delay.NewSignal(), last: map[string]time.Time{}}}, nil
}

// Find returns a region, and imports it if it is not registered. If the owner is empty,
// the cloud region of any owner with that id is imported, if there is one only. Find
// returns nf.NotFound if A&AI does not have the region either, nf.Conflict if it has
// several, and nf.Unreachable if A&AI does not respond.
func (i *Importer) Find(ctx context.Context, owner, id string) (nf.Region, error) {
	region, err := i.cfg.Regions.Region(ctx, id)
	if nf.KindOf(err) != nf.NotFound {
		return region, err
	}
	if len(nf.CheckID("", id)) > 0 || i.missed(owner, id) {
		return nf.Region{}, err
	}
	found, err := i.read(ctx, owner, id)
	if err != nil {
		if nf.KindOf(err) == nf.NotFound {
			i.miss(owner, id)
		}
		return nf.Region{}, err
	}
	return i.take(ctx, found)
}

// Import imports a region of A&AI, or compares it with A&AI now. A region whose access a
// request has set stays as it is. Its errors are those of Find.
func (i *Importer) Import(ctx context.Context, owner, id string) (nf.Region, error) {
	region, err := i.cfg.Regions.Region(ctx, id)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		found, err := i.read(ctx, owner, id)
		if err != nil {
			return nf.Region{}, err
		}
		return i.take(ctx, found)
	case err != nil || region.AAI == nil:
		return region, err
	case region.AAI.Owner != owner:
		return nf.Region{}, taken(id)
	}
	return i.compare(ctx, region, true)
}

func taken(id string) error {
	return nf.E(nf.Conflict, "import", "cloud region "+id, nf.Violations{{Field: "cloud_owner", Message: "is another one than that of the registered cloud region"}})
}

// read returns a cloud region that is a cluster.
func (i *Importer) read(ctx context.Context, owner, id string) (aai.CloudRegion, error) {
	none := nf.E(nf.NotFound, "get", "cloud region "+id, nil)
	if owner == "" {
		all, err := i.cfg.Inventory.CloudRegions(ctx, id)
		if err != nil {
			return aai.CloudRegion{}, err
		}
		for _, c := range all {
			if c.ID != id || !i.cfg.Rules.IsCluster(c) {
				continue
			}
			if owner != "" {
				return aai.CloudRegion{}, nf.E(nf.Conflict, "import", "cloud region "+id, nf.Violations{{Field: "cloud_region_id", Message: "is that of several owners in A&AI; import one of them by its owner"}})
			}
			owner = c.Owner
		}
	}
	if len(nf.CheckID("", owner)) > 0 {
		return aai.CloudRegion{}, none
	}
	c, err := i.cfg.Inventory.CloudRegion(ctx, owner, id)
	if err == nil && !i.cfg.Rules.IsCluster(c) {
		err = none
	}
	return c, err
}

// take makes the region of a cloud region of A&AI, or updates it. It returns the region.
func (i *Importer) take(ctx context.Context, c aai.CloudRegion) (nf.Region, error) {
	found, err := i.cfg.Rules.Find(c)
	source := nf.AAISource{Owner: c.Owner, Version: c.Version, Systems: digest(c.Systems), Place: found.Place, Reference: found.Reference}
	if err != nil {
		source.Reason = "A&AI has no credentials that can be used: " + err.Error()
	}
	region, err := i.cfg.Regions.Region(ctx, c.ID)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return i.enlist(ctx, c.ID, found, source)
	case err != nil || region.AAI == nil:
		return region, err
	case region.AAI.Owner != c.Owner:
		return nf.Region{}, taken(c.ID)
	}
	return i.update(ctx, region, found.Access, source)
}

func (i *Importer) enlist(ctx context.Context, id string, found Credentials, source nf.AAISource) (nf.Region, error) {
	namespace := found.Namespace
	if len(nf.CheckNamespace("", namespace)) > 0 {
		namespace = ""
	}
	tenant, err := i.tenant(ctx, source.Owner, id, namespace)
	if err != nil {
		return nf.Region{}, err
	}
	made, err := i.cfg.Regions.Enlist(ctx, nf.Region{
		ID: id, Owner: source.Owner, Origin: nf.OriginAAI, Access: found.Access, AAI: &source, DefaultNamespace: namespace, AAITenant: tenant,
	})
	if nf.KindOf(err) == nf.Exists { // another request has registered it
		return i.cfg.Regions.Region(ctx, id)
	}
	if err != nil {
		i.cfg.Observe(Failed)
		return nf.Region{}, err
	}
	result := Imported
	if source.Reason != "" {
		result = WithoutAccess
	}
	i.cfg.Observe(result)
	i.cfg.Logger.InfoContext(ctx, "cloud region imported from A&AI", "region", id, "owner", source.Owner, "place", source.Place, "reason", source.Reason)
	return made, nil
}

// tenant returns the tenant of a region: the only one that A&AI has, or, if it has none and
// the service creates tenants, one that is named as the default namespace.
func (i *Importer) tenant(ctx context.Context, owner, id, namespace string) (string, error) {
	all, err := i.cfg.Inventory.Tenants(ctx, owner, id)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0 && i.cfg.NewTenants:
		return cmp.Or(namespace, "default"), nil
	case len(all) != 1 || len(nf.CheckAAIName("", all[0])) > 0:
		return "", nil
	}
	return all[0], nil
}

// update gives a region what A&AI has. Without an access in A&AI, the region keeps its own.
func (i *Importer) update(ctx context.Context, region nf.Region, access nf.Access, source nf.AAISource) (nf.Region, error) {
	if source.Reason != "" {
		access = region.Access
	}
	if access.Equal(region.Access) && *region.AAI == source {
		return region, nil
	}
	changed, err := i.edit(ctx, region.ID, func(g *nf.Region) { g.Access, g.AAI = access, &source })
	if err != nil {
		i.cfg.Observe(Failed)
		if nf.KindOf(err) != nf.Unreachable {
			return region, err
		}
		source.Version = "" // so that the next comparison tries again
		source.Reason = "the cloud region does not respond, or does not accept the credentials that A&AI has"
		_, note := i.edit(ctx, region.ID, func(g *nf.Region) { g.AAI = &source })
		return region, errors.Join(err, note)
	}
	switch {
	case source.Reason != "" && source.Reason != region.AAI.Reason:
		i.cfg.Observe(WithoutAccess)
	case !access.Equal(region.Access):
		i.cfg.Observe(Updated)
		i.cfg.Logger.InfoContext(ctx, "cloud region has other credentials in A&AI", "region", region.ID, "place", source.Place)
	}
	return changed, nil
}

// edit edits a region, unless a request has made it local.
func (i *Importer) edit(ctx context.Context, id string, edit func(*nf.Region)) (nf.Region, error) {
	return i.cfg.Regions.UpdateRegion(ctx, id, func(g *nf.Region) error {
		if g.AAI != nil {
			edit(g)
		}
		return nil
	})
}

// compare compares an imported region with A&AI. It reads the credentials if A&AI has
// another version, if they may change without A&AI, or in any case.
func (i *Importer) compare(ctx context.Context, region nf.Region, always bool) (nf.Region, error) {
	c, err := i.cfg.Inventory.CloudRegion(ctx, region.AAI.Owner, region.ID)
	switch {
	case nf.KindOf(err) == nf.NotFound:
		return i.vanish(ctx, region)
	case err != nil:
		i.cfg.Observe(Failed)
		return region, err
	}
	was := region.AAI
	same := was.Version == c.Version && was.Systems == digest(c.Systems) && was.Vanished.IsZero()
	if same && !always && was.Reason == "" && !was.Reference {
		return region, nil
	}
	return i.take(ctx, c)
}

// vanish marks a region that A&AI no longer has.
func (i *Importer) vanish(ctx context.Context, region nf.Region) (nf.Region, error) {
	if !region.AAI.Vanished.IsZero() {
		return region, nil
	}
	source := *region.AAI
	source.Vanished = i.cfg.Clock().UTC()
	changed, err := i.edit(ctx, region.ID, func(g *nf.Region) { g.AAI = &source })
	if err == nil {
		i.cfg.Observe(Vanished)
		i.cfg.Logger.WarnContext(ctx, "A&AI no longer has a cloud region; it stays registered", "region", region.ID, "owner", source.Owner)
	}
	return changed, err
}

func digest(systems []aai.System) string {
	if len(systems) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, s := range systems {
		fmt.Fprintf(sum, "%q %q\n", s.ID, s.Version)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// missed reports whether A&AI did not have a region a moment ago.
func (i *Importer) missed(owner, id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	last, known := i.misses[owner+"/"+id]
	return known && i.cfg.Clock().Sub(last) < missPeriod
}

func (i *Importer) miss(owner, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.misses) >= maxMisses {
		clear(i.misses)
	}
	i.misses[owner+"/"+id] = i.cfg.Clock()
}
