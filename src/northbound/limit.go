package northbound

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Limit says how often a client may ask: an identity, or an address while
// nobody knows who asks.
type Limit struct {
	Rate    float64 // requests a second; 0: as often as it likes
	Burst   int     // at once; default twice the rate
	Clients int     // that are kept in mind, those that came last; default 10 000
}

const (
	// tellBurst refusals of a client are recorded one by one, and then one for
	// each tellEvery, with the number of those between: who is refused must not
	// be able to fill a disk.
	tellBurst = 10
	tellEvery = 10 * time.Second
)

// limiter limits clients, in two generations: when the young one is full it
// becomes the old one, and the old one is forgotten.
type limiter struct {
	limit Limit
	now   func() time.Time

	mu         sync.Mutex
	young, old map[string]*client
}

// client is how often a client may still ask, and be told of.
type client struct {
	requests *rate.Limiter
	refusals *rate.Limiter
	missed   int // refusals that were not recorded
}

func newLimiter(limit Limit, now func() time.Time) *limiter {
	if limit.Burst == 0 {
		limit.Burst = max(1, int(2*limit.Rate))
	}
	if limit.Clients == 0 {
		limit.Clients = 10_000
	}
	return &limiter{limit: limit, now: now, young: map[string]*client{}}
}

// take lets a client's request in, or fails with nf.TooMany and when to try
// again.
func (l *limiter) take(name string) error {
	if l.limit.Rate == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	place := l.of(name).requests.ReserveN(now, 1)
	after := place.DelayFrom(now)
	if after == 0 {
		return nil
	}
	place.CancelAt(now) // who is refused does not wait the longer for it
	return &nf.Error{Kind: nf.TooMany, Op: "carry out", Subject: "the request", After: after,
		Err: errors.New("its client asks more often than it may")}
}

// tell reports whether a refusal of a client is to be recorded, and how many
// were not since the last that was.
func (l *limiter) tell(name string) (missed int, tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.of(name)
	if !c.refusals.AllowN(l.now(), 1) {
		c.missed++
		return 0, false
	}
	missed, c.missed = c.missed, 0
	return missed, true
}

func (l *limiter) of(name string) *client {
	if c, ok := l.young[name]; ok {
		return c
	}
	c, ok := l.old[name]
	if !ok {
		c = &client{
			requests: rate.NewLimiter(rate.Limit(l.limit.Rate), l.limit.Burst),
			refusals: rate.NewLimiter(rate.Every(tellEvery), tellBurst),
		}
	}
	if len(l.young) >= l.limit.Clients/2 {
		l.old, l.young = l.young, map[string]*client{}
	}
	l.young[name] = c
	return c
}

// remoteOf returns the address that a request comes from.
func remoteOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// clientOf returns the address, or of IPv6 the network of 64 bits, all of whose
// addresses one client may have.
func clientOf(r *http.Request) string {
	ip, err := netip.ParseAddr(remoteOf(r))
	if err != nil {
		return "unknown"
	}
	if ip = ip.Unmap(); ip.Is6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
