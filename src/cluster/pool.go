package cluster

import (
	"crypto/sha256"
	"sync"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// PoolConfig says how a pool's clusters behave. The zero value is good.
type PoolConfig struct {
	Parallel int // requests that one call may have under way at once; default 16
}

// Pool holds one Cluster for each cloud region. It is safe for concurrent use.
type Pool struct {
	parallel int

	mu    sync.Mutex
	known map[string]entry // by region id
}

type entry struct {
	digest  [sha256.Size]byte // of the kubeconfig
	cluster *Cluster
}

// New returns an empty pool.
func New(cfg PoolConfig) *Pool {
	if cfg.Parallel <= 0 {
		cfg.Parallel = 16
	}
	return &Pool{parallel: cfg.Parallel, known: map[string]entry{}}
}

// Open returns the cluster that a region's kubeconfig speaks of, without
// dialling. The same kubeconfig gives the same Cluster, with its connection and
// what it knows; another one replaces it at once. A kubeconfig that cannot be
// used is nf.Invalid, as Parse says.
func (p *Pool) Open(id string, kubeconfig []byte) (*Cluster, error) {
	digest := sha256.Sum256(kubeconfig)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.known[id]; ok && e.digest == digest {
		return e.cluster, nil
	}
	cfg, err := Parse(kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := newCluster(cfg, p.parallel)
	if err != nil {
		return nil, nf.E(nf.Invalid, "open", "cloud region "+id, err)
	}
	p.forget(id)
	p.known[id] = entry{digest: digest, cluster: c}
	return c, nil
}

// Forget drops a region's cluster and its idle connections. Calls that are
// under way finish.
func (p *Pool) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(id)
}

func (p *Pool) forget(id string) {
	if e, ok := p.known[id]; ok {
		e.cluster.http.CloseIdleConnections()
		delete(p.known, id)
	}
}
