package northbound

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Limit limits the request rate of each client. A client is an identity, or an
// address if the identity is unknown.
type Limit struct {
	Rate    float64 // requests per second; 0: no limit
	Burst   int     // requests at once; default twice the rate
	Clients int     // clients tracked, the most recent ones; default 10 000
}

const (
	// The first tellBurst refusals of a client are recorded one by one. After
	// that, one is recorded every tellEvery with the number of those in
	// between, so that a refused client cannot fill the disk.
	tellBurst = 10
	tellEvery = 10 * time.Second
)

// limiter limits clients. It forgets the client that has been quiet longest if
// there are more than Limit.Clients.
type limiter struct {
	limit Limit
	now   func() time.Time

	mu      sync.Mutex
	clients *simplelru.LRU[string, *client]
}

// client holds a client's remaining requests and audit entries.
type client struct {
	requests *rate.Limiter
	refusals *rate.Limiter
	missed   int // refusals that were not recorded
}

func newLimiter(limit Limit, now func() time.Time) *limiter {
	if limit.Burst == 0 {
		limit.Burst = max(1, int(2*limit.Rate))
	}
	if limit.Clients <= 0 {
		limit.Clients = 10_000
	}
	clients, _ := simplelru.NewLRU[string, *client](limit.Clients, nil) // fails only for a size below 1
	return &limiter{limit: limit, now: now, clients: clients}
}

// take consumes one request of a client, or returns nf.TooManyRequests with the time to
// wait.
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
	place.CancelAt(now) // a refused request does not extend the wait
	return &nf.Error{Kind: nf.TooManyRequests, Op: "carry out", Subject: "the request", RetryAfter: after,
		Err: errors.New("the client exceeds its rate limit")}
}

// tell reports whether to record a refusal of a client, and how many were
// suppressed since the last recorded one.
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
	c, ok := l.clients.Get(name)
	if !ok {
		c = &client{
			requests: rate.NewLimiter(rate.Limit(l.limit.Rate), l.limit.Burst),
			refusals: rate.NewLimiter(rate.Every(tellEvery), tellBurst),
		}
		l.clients.Add(name, c)
	}
	return c
}

// remoteOf returns the remote IP address of a request.
func remoteOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// clientOf returns the remote address. For IPv6 it returns the /64 network,
// because one client may use all of its addresses.
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
