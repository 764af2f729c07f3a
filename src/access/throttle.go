package access

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	failures      = 10              // maximum failures of an address in a burst
	forgiven      = 6 * time.Second // time until one failure is forgiven
	maxAddresses  = 4096            // that are remembered; up to twice as many are stored
	anonymousAddr = "unknown"
)

// throttle counts failed attempts by address. If there are too many addresses,
// it drops those that have been quiet longest.
type throttle struct {
	now func() time.Time

	mu         sync.Mutex
	young, old map[string]*attempts
}

// attempts holds how many more failures an address may have.
type attempts struct {
	left    float64
	at      time.Time
	pending int // attempts that have not ended
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, young: map[string]*attempts{}}
}

// begin starts an attempt. The caller must call end when the attempt ends. If
// the address has no attempts left, end is nil and after is the time to wait.
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

// of returns the attempts of an address, and adds those forgiven since the last
// call.
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
