package access

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	failures      = 10              // that an address may make at once
	forgiven      = 6 * time.Second // after which one of them is
	maxAddresses  = 4096            // that are remembered; twice as many at most
	anonymousAddr = "unknown"
)

// throttle counts failed attempts by address. It forgets the addresses that
// have been quiet longest when there are too many.
type throttle struct {
	now func() time.Time

	mu         sync.Mutex
	young, old map[string]*attempts
}

// attempts is how many failures an address has left.
type attempts struct {
	left    float64
	at      time.Time
	pending int // attempts whose end is not known yet
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, young: map[string]*attempts{}}
}

// begin takes an attempt, or says when the next one may be made. Every attempt
// that was taken is ended by calling end.
func (t *throttle) begin(addr string) (end func(failed bool), after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of(addr)
	if a.left-float64(a.pending) < 1 {
		return nil, max(time.Second, time.Duration((1-a.left)*float64(forgiven)))
	}
	a.pending++
	return func(failed bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		a.pending--
		if failed {
			a.left--
		}
	}, 0
}

// of returns the attempts of an address, with what has been forgiven since.
func (t *throttle) of(addr string) *attempts {
	a, ok := t.young[addr]
	if !ok {
		if a, ok = t.old[addr]; !ok {
			a = &attempts{left: failures, at: t.now()}
		}
		if len(t.young) >= maxAddresses {
			t.old, t.young = t.young, map[string]*attempts{}
		}
		t.young[addr] = a
	}
	now := t.now()
	a.left = min(failures, a.left+now.Sub(a.at).Seconds()/forgiven.Seconds())
	a.at = now
	return a
}

// addressOf returns where a request comes from. Of IPv6 it is the network of
// 64 bits, of which one client may have all addresses.
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
