package cluster

import (
	"crypto/sha256"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/outbound"
)

// PoolConfig says how a pool's clusters behave. The zero value is good.
type PoolConfig struct {
	Parallel      int           // requests that one call may have under way at once; default 16
	Failures      int           // requests in a row without an answer that open a region's breaker; default 5
	ExpiryWarning time.Duration // how long before a credential expires its region is nf.RegionExpiring; default 14 days

	// Hosts are the addresses that a region may have. Default: all that are
	// harmless.
	Hosts outbound.Hosts

	// Wrap returns what a region's requests go through on their way out, below
	// the breaker and above the network. It sees their credentials. Default: rt.
	Wrap func(region string, rt http.RoundTripper) http.RoundTripper

	// Observe is told of each HTTP request once it has its answer or none, also
	// of one that was held back. It must be quick. Default: nobody is told.
	Observe func(Call)

	Logger *slog.Logger     // is told once when a region is away, and once when it is back; default: no log
	Clock  func() time.Time // default time.Now

	limits limits // a test's; default: regionLimits
}

func (cfg PoolConfig) filled() PoolConfig {
	if cfg.limits == (limits{}) {
		cfg.limits = regionLimits()
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
	cfg PoolConfig

	mu    sync.Mutex
	known map[string]*entry // by region id
}

type entry struct {
	digest  [sha256.Size]byte // of the kubeconfig
	cluster *Cluster
	opened  time.Time
	due     time.Time // when it is to be asked how it is doing
	asked   bool      // it is being asked
}

// New returns an empty pool.
func New(cfg PoolConfig) *Pool {
	return &Pool{cfg: cfg.filled(), known: map[string]*entry{}}
}

// Open returns the cluster that a region's kubeconfig speaks of, without
// dialling. The same kubeconfig gives the same Cluster, with its connection and
// what it knows; another one replaces it at once, as Forget would. A kubeconfig
// that cannot be used is nf.Invalid, as Parse says.
func (p *Pool) Open(id string, kubeconfig []byte) (*Cluster, error) {
	c, former, err := p.open(id, kubeconfig)
	if former != nil {
		former.guard.retire()
	}
	return c, err
}

// open returns the cluster, and the one whose place it took.
func (p *Pool) open(id string, kubeconfig []byte) (c, former *Cluster, err error) {
	digest := sha256.Sum256(kubeconfig)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.known[id]; e != nil {
		if e.digest == digest {
			return e.cluster, nil, nil
		}
		former = e.cluster
	}
	cfg, err := Parse(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	if c, err = newCluster(cfg, id, p.cfg); err != nil {
		return nil, nil, nf.E(nf.Invalid, "open", "cloud region "+id, err)
	}
	if former != nil {
		c.guard.standing.follow(&former.guard.standing)
	}
	now := p.cfg.Clock()
	p.known[id] = &entry{digest: digest, cluster: c, opened: now, due: now}
	return c, former, nil
}

// Forget drops a region's cluster. Its watches and whatever else waits end at
// once with nf.Unreachable, reason "replaced", and so does every request that
// has not begun; requests that are under way finish.
func (p *Pool) Forget(id string) {
	p.mu.Lock()
	e := p.known[id]
	delete(p.known, id)
	p.mu.Unlock()
	if e != nil {
		e.cluster.guard.retire()
	}
}

// State tells how a region is doing: nf.RegionUnknown for one that was never
// opened.
func (p *Pool) State(id string) nf.RegionState {
	p.mu.Lock()
	e := p.known[id]
	p.mu.Unlock()
	if e == nil {
		return nf.RegionState{Condition: nf.RegionUnknown, Breaker: nf.BreakerClosed}
	}
	return e.cluster.state(p.cfg.ExpiryWarning)
}

// States tells how each region is doing that was opened and not forgotten.
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
