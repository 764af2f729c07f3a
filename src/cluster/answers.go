package cluster

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	mostAccepted = 1024             // dry runs that are remembered per region
	acceptedTime = 10 * time.Minute // for which a dry run need not be repeated
	indexTime    = time.Minute      // for which the OpenAPI index is not read again

	mostNamespaces = 1024            // that are remembered per region
	namespaceTime  = 5 * time.Second // for which the state of a namespace counts as known
)

// answers remembers recent responses of a region's API server, so that the same
// request is not sent again. All clients of the region share it. It is safe for
// concurrent use.
type answers struct {
	clock   func() time.Time
	listing atomic.Bool // the API server has refused a watch that sends the present state first

	mu         sync.Mutex
	accepted   *simplelru.LRU[digest, time.Time] // objects that a dry run accepted
	applied    *simplelru.LRU[string, applied]   // objects that were applied, by Ref.Key
	namespaces *simplelru.LRU[string, sighting]
	index      unique.Handle[string] // the OpenAPI index, which equal regions share; zero: not read
	indexed    time.Time             // when it was read
	version    string                // of the API server, as old as the kinds may be; empty: not read
	versioned  time.Time             // when it was read
}

type digest [sha256.Size]byte

func newAnswers(clock func() time.Time) *answers {
	accepted, _ := simplelru.NewLRU[digest, time.Time](mostAccepted, nil) // fails only for a size below 1
	applied, _ := simplelru.NewLRU[string, applied](mostApplied, nil)
	namespaces, _ := simplelru.NewLRU[string, sighting](mostNamespaces, nil)
	return &answers{clock: clock, accepted: accepted, applied: applied, namespaces: namespaces}
}

// accept remembers that a dry run accepted an object.
func (a *answers) accept(object digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.accepted.Add(object, a.clock())
}

// accepts reports whether a dry run has accepted an object recently.
func (a *answers) accepts(object digest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, found := a.accepted.Get(object)
	return found && a.clock().Sub(at) < acceptedTime
}

// readVersion returns the version of the API server. It calls read if the version has
// not been read recently.
func (a *answers) readVersion(ctx context.Context, read func(context.Context) (string, error)) (string, error) {
	a.mu.Lock()
	known, fresh := a.version, a.version != "" && a.clock().Sub(a.versioned) < kindsTime
	a.mu.Unlock()
	if fresh {
		return known, nil
	}
	version, err := read(ctx)
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version, a.versioned = version, a.clock()
	return version, nil
}

// readIndex returns the OpenAPI index. It calls read if the index has not been
// read recently. If the schemas have changed, all accepted objects are forgotten.
func (a *answers) readIndex(ctx context.Context, read func(context.Context) ([]byte, error)) ([]byte, error) {
	a.mu.Lock()
	known, fresh := a.index, a.fresh()
	a.mu.Unlock()
	if fresh {
		return []byte(known.Value()), nil
	}
	text, err := read(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := unique.Make(string(text))
	if a.index != now {
		a.accepted.Purge()
	}
	a.index, a.indexed = now, a.clock()
	return text, nil
}

// indexKnown reports whether readIndex would not read the index.
func (a *answers) indexKnown() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fresh()
}

func (a *answers) fresh() bool { return !a.indexed.IsZero() && a.clock().Sub(a.indexed) < indexTime }

// expireIndex makes the next call of readIndex read it again.
func (a *answers) expireIndex() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.indexed = time.Time{}
}

// sighting is the state of a namespace at a time.
type sighting struct {
	at       time.Time
	missing  bool
	deleting bool
	is       nf.Namespace
}

// sawNamespace remembers the state of a namespace; m is nil if it does not exist.
func (a *answers) sawNamespace(name string, m *metav1.ObjectMeta) {
	s := sighting{at: a.clock(), missing: m == nil}
	if m != nil {
		s.deleting, s.is = m.DeletionTimestamp != nil, namespaceOf(m)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.namespaces.Add(name, s)
}

// namespace returns the state of a namespace if it was read recently.
func (a *answers) namespace(name string) (s sighting, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, known = a.namespaces.Get(name)
	return s, known && a.clock().Sub(s.at) < namespaceTime
}

// namespaceMissing reports whether a namespace did not exist when it was read
// recently.
func (a *answers) namespaceMissing(name string) bool {
	s, known := a.namespace(name)
	return known && s.missing
}

// namespaceExisted reports whether a namespace existed when it was last read.
func (a *answers) namespaceExisted(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, read := a.namespaces.Get(name)
	return read && !s.missing
}

// forgetNamespace makes the next use of a namespace read it.
func (a *answers) forgetNamespace(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.namespaces.Remove(name)
}
