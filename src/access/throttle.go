package access

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

const (
	failures      = 10              // maximum failures of an address in a burst
	forgiven      = 6 * time.Second // time until one failure is forgiven
	maxAddresses  = 4096            // that are remembered
	anonymousAddr = "unknown"
)

// throttle counts failed attempts by address. If there are too many addresses,
// it drops those that have been quiet longest.
type throttle struct {
	now func() time.Time

	mu        sync.Mutex
	addresses *simplelru.LRU[string, *attempts]
}

// attempts are those of one address.
type attempts struct {
	failures *rate.Limiter // its tokens are the failures that are left
	pending  int           // attempts that have not ended
}

func newThrottle(now func() time.Time) *throttle {
	addresses, _ := simplelru.NewLRU[string, *attempts](maxAddresses, nil) // fails only for a size below 1
	return &throttle{now: now, addresses: addresses}
}

// begin starts an attempt. The caller must call end when the attempt ends. If
// the address has no attempts left, end is nil and after is the time to wait.
func (t *throttle) begin(addr string) (end func(failed bool), after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.addresses.Get(addr)
	if !ok {
		a = &attempts{failures: rate.NewLimiter(rate.Every(forgiven), failures)}
		t.addresses.Add(addr, a)
	}
	left := a.failures.TokensAt(t.now())
	if left-float64(a.pending) < 1 {
		return nil, max(time.Second, time.Duration((1-left)*float64(forgiven)))
	}
	a.pending++
	return func(failed bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		a.pending--
		if failed {
			a.failures.AllowN(t.now(), 1)
		}
	}, 0
}

// addressOf returns the address of the client. For IPv6 it is the /64 network,
// because one client may use all of its addresses.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return anonymousAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return anonymousAddr
	}
	if ip = ip.Unmap(); ip.Is6() {
		if p, err := ip.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
