package schema

import (
	"context"
	"crypto/sha512"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// defaultCacheSize is the default size of a cache in bytes. The documents of
// one Kubernetes version take about 5 MiB.
const defaultCacheSize = 64 << 20

// maxDocuments is the maximum number of documents in a cache, whatever their
// size.
const maxDocuments = 4096

// atOnce is how many documents and kinds are compiled in parallel.
const atOnce = 2

// Config configures a Cache.
type Config struct {
	MaxBytes int64 // approximate limit for documents and compiled schemas in memory; 0: 64 MiB
}

// Cache holds the schemas of all regions. Documents are keyed by the digest of
// their content, so that regions with the same kinds share one copy, and no
// region can change what another one gets. When it is full, it evicts the least
// recently used documents. It is safe for concurrent use.
type Cache struct {
	max   int64
	slots chan struct{}

	mu      sync.Mutex
	entries *simplelru.LRU[digest, *entry]
}

type digest [sha512.Size]byte

type entry struct {
	document *document
	digest   digest
	err      error // why the document cannot be used
}

// NewCache returns an empty cache.
func NewCache(cfg Config) *Cache {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultCacheSize
	}
	entries, _ := simplelru.NewLRU[digest, *entry](maxDocuments, nil) // fails only for a size below 1
	return &Cache{max: cfg.MaxBytes, slots: make(chan struct{}, atOnce), entries: entries}
}

// get returns the document with a digest, or nil if it is not cached.
func (c *Cache) get(d digest) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, _ := c.entries.Get(d)
	return e
}

// load returns the document with a digest, and calls make if it is not cached.
func (c *Cache) load(ctx context.Context, d digest, make func() (*document, error)) (*entry, error) {
	if e := c.get(d); e != nil {
		return e, nil
	}
	free, err := c.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	if e := c.get(d); e != nil { // loaded while this call waited
		return e, nil
	}
	e := &entry{digest: d}
	if e.document, e.err = make(); e.err != nil {
		e.document = newDocument() // errors are cached too, so that the document is not read again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Add(d, e)
	c.evict()
	return e, nil
}

// kind returns a compiled kind of a document, or the reason why it is unusable.
func (c *Cache) kind(ctx context.Context, e *entry, gvk schema.GroupVersionKind) (k *kind, unusable, err error) {
	if e.err != nil {
		return nil, e.err, nil
	}
	if k, unusable, done := e.document.known(gvk); done {
		return k, unusable, nil
	}
	free, err := c.slot(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer free()
	k, unusable = e.document.kind(gvk)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Get(e.digest) // makes it the most recently used one, which evict keeps
	c.evict()
	return k, unusable, nil
}

// slot waits until another document or kind may be compiled.
func (c *Cache) slot(ctx context.Context) (free func(), err error) {
	select {
	case c.slots <- struct{}{}:
		return func() { <-c.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// evict removes the least recently used documents, except the last one, until
// the cache is within its size.
func (c *Cache) evict() {
	var sum int64
	for _, e := range c.entries.Values() {
		sum += e.bytes()
	}
	for sum > c.max && c.entries.Len() > 1 {
		_, e, _ := c.entries.RemoveOldest()
		sum -= e.bytes()
	}
}

func (e *entry) bytes() int64 {
	const least = 1 << 10
	return least + e.document.size.Load()
}
