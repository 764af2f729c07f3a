package cluster

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/multicloud-k8s/k8splugin/src/cluster/schema"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
	"github.com/multicloud-k8s/k8splugin/src/readiness"
)

// PoolConfig configures a pool's clusters. The zero value is usable.
type PoolConfig struct {
	Parallel      int           // concurrent requests of one call; default 16
	Failures      int           // consecutive requests without a response that open a region's breaker; default 5
	ExpiryWarning time.Duration // how long before a credential expires its region is nf.RegionExpiring; default 14 days

	// Hosts are the addresses that regions may have. Default: those that
	// outbound.Harmless allows.
	Hosts outbound.Hosts

	// Wrap wraps the transport of a region's requests, below the breaker and
	// above the network. It sees their credentials. Default: rt.
	Wrap func(region string, rt http.RoundTripper) http.RoundTripper

	// Readiness are the rules for custom resources. Default: readiness.Shipped.
	Readiness *readiness.Rules

	// Observe is called for each HTTP request when it has finished or failed,
	// including requests that were not sent. It must return quickly. Default:
	// none.
	Observe func(Call)

	// Keep stores the renewed token of a region's service account, unless a token
	// that expires later is stored. It does nothing if the region has another
	// access by now. Default: tokens of service accounts are not renewed.
	Keep func(ctx context.Context, region string, access nf.Access, token nf.RenewedToken) error

	// Renewal edits what is stored of the renewal of a region's client certificate,
	// and returns it. Edit may be called more than once. If the region has another
	// access by now, Renewal stores nothing and returns zero. Default: client
	// certificates are not renewed.
	Renewal func(ctx context.Context, region string, access nf.Access, edit func(*nf.CertificateRenewal)) (nf.CertificateRenewal, error)

	// RegionsVersion returns a number that differs after each change of the registered
	// regions, if it is known. It must return quickly. Default: it is not known.
	RegionsVersion func() (version uint64, known bool)

	// Rejected is called for each request whose credentials the region does not
	// accept: those of the access. It must return quickly. Default: none.
	Rejected func(region string, access nf.Access)

	Logger *slog.Logger     // logs once when a region becomes unreachable, and once when it recovers; default: no log
	Clock  func() time.Time // default time.Now

	limits  limits                       // for tests; default: regionLimits
	usage   *usage                       // shared by several clusters; default: a new one for each
	dial    dialer                       // for tests; default: to the addresses that Hosts allow
	schemas *schema.Cache                // shared by all regions; default: a new one
	codecs  runtime.NegotiatedSerializer // shared by all regions; default: statuses()
	kinds   *kindSets                    // shared by all regions; default: a new one
	surveys *surveys                     // shared by all regions; default: a new one
}

func (cfg PoolConfig) filled() PoolConfig {
	if cfg.limits == (limits{}) {
		cfg.limits = regionLimits()
	}
	if cfg.schemas == nil {
		cfg.schemas = schema.NewCache(schema.Config{})
	}
	if cfg.kinds == nil {
		cfg.kinds = newKindSets()
	}
	if cfg.surveys == nil {
		cfg.surveys = newSurveys()
	}
	if cfg.Readiness == nil {
		cfg.Readiness = readiness.Shipped()
	}
	if cfg.codecs == nil {
		cfg.codecs = statuses()
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = 16
	}
	if cfg.Failures <= 0 {
		cfg.Failures = 5
	}
	if cfg.ExpiryWarning <= 0 {
		cfg.ExpiryWarning = 14 * 24 * time.Hour
	}
	if cfg.Wrap == nil {
		cfg.Wrap = func(_ string, rt http.RoundTripper) http.RoundTripper { return rt }
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Call) {}
	}
	if cfg.Rejected == nil {
		cfg.Rejected = func(string, nf.Access) {}
	}
	if cfg.RegionsVersion == nil {
		cfg.RegionsVersion = func() (uint64, bool) { return 0, false }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return cfg
}

// Pool holds one Cluster for each cloud region. It is safe for concurrent use.
type Pool struct {
	cfg    PoolConfig
	probes *usage // of servers that are not regions yet

	mu      sync.Mutex
	known   map[string]*entry              // by region id
	equal   map[[sha256.Size]byte][]string // the ids of regions by nf.Access.Digest, in the order in which they were opened
	changes uint64                         // number of clusters that were opened or dropped
}

type entry struct {
	access  nf.Access
	digest  [sha256.Size]byte // of the access
	cluster *Cluster
	opened  time.Time
	due     time.Time // time of the next check
	probing bool      // a check is in progress
}

// New returns an empty pool.
func New(cfg PoolConfig) *Pool {
	cfg = cfg.filled()
	return &Pool{cfg: cfg, probes: newUsage(cfg.limits), known: map[string]*entry{}, equal: map[[sha256.Size]byte][]string{}}
}

// Open returns the cluster of a region's access, without connecting. An equal
// access returns the same Cluster, with its connections and caches, and a renewed
// token that is newer takes effect; another access replaces it at once, as Forget
// would. It returns nf.Invalid if the access cannot be used.
func (p *Pool) Open(id string, access nf.Access) (*Cluster, error) {
	c, former, err := p.open(id, access)
	if former != nil {
		former.transport.close()
	}
	return c, err
}

// open returns the cluster, and the one that it replaced.
func (p *Pool) open(id string, access nf.Access) (c, former *Cluster, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.known[id]; e != nil {
		if e.access.Equal(access) {
			e.access = access // comparing equal values is quicker
			e.cluster.transport.offer(access)
			return e.cluster, nil, nil
		}
		former = e.cluster
	}
	if c, err = newCluster(access, id, p.cfg); err != nil {
		return nil, nil, nf.E(nf.Invalid, "open", "cloud region "+id, err)
	}
	if former != nil {
		c.transport.health.copyOutage(&former.transport.health)
	}
	p.remove(id)
	p.changes++
	now, digest := p.cfg.Clock(), access.Digest()
	p.known[id] = &entry{access: access, digest: digest, cluster: c, opened: now, due: now}
	p.equal[digest] = append(p.equal[digest], id)
	return c, former, nil
}

// remove removes a region, and returns its entry, or nil. The caller holds the lock.
func (p *Pool) remove(id string) *entry {
	e := p.known[id]
	if e == nil {
		return nil
	}
	p.changes++
	delete(p.known, id)
	rest := slices.DeleteFunc(p.equal[e.digest], func(other string) bool { return other == id })
	if p.equal[e.digest] = rest; len(rest) == 0 {
		delete(p.equal, e.digest)
	}
	return e
}

// Canonical returns the region that was opened first of those that have the access of a
// region now: a watch in one shows the objects of all. A region that is not open is its own.
func (p *Pool) Canonical(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.known[id]; e != nil {
		return p.equal[e.digest][0]
	}
	return id
}

// Forget drops a region's cluster. Its watches, waits and unsent requests end
// at once with nf.Unreachable, reason "replaced"; requests in progress finish.
func (p *Pool) Forget(id string) {
	p.mu.Lock()
	e := p.remove(id)
	p.mu.Unlock()
	if e != nil {
		e.cluster.transport.close()
	}
}

// State returns the state of a region: nf.RegionUnknown if it is not open.
func (p *Pool) State(id string) nf.RegionState {
	p.mu.Lock()
	e := p.known[id]
	p.mu.Unlock()
	if e == nil {
		return nf.RegionState{Condition: nf.RegionUnknown, Breaker: nf.BreakerClosed}
	}
	return e.cluster.state(p.cfg.ExpiryWarning)
}

// States returns the state of each region that is open, by id.
func (p *Pool) States() map[string]nf.RegionState {
	out := map[string]nf.RegionState{}
	for id, c := range p.clusters() {
		out[id] = c.state(p.cfg.ExpiryWarning)
	}
	return out
}

func (p *Pool) clusters() map[string]*Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]*Cluster, len(p.known))
	for id, e := range p.known {
		out[id] = e.cluster
	}
	return out
}
