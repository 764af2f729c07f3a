package northbound_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/northbound"
)

func TestLimit(t *testing.T) {
	t.Parallel()
	var done []string
	b := &book{}
	h := handler(t, northbound.Config{Access: door{}, Audit: b, Limit: northbound.Limit{Rate: 0.01, Burst: 3}, APIs: []northbound.API{doing(&done)}})
	status := func(path, who string) int { return ask(h, "GET", path, who, "").Code }
	for i := range 3 {
		if got := status("/absent", "ann"); got != 404 {
			t.Fatalf("request %d of the burst is %d", i, got)
		}
	}
	w := ask(h, "GET", "/absent", "ann", "")
	if p := problemOf(t, w); w.Code != 429 || p.Kind != nf.TooManyRequests || w.Header().Get("Retry-After") == "" || w.Header().Get("Retry-After") == "0" {
		t.Errorf("the next is %d, Retry-After %q: %+v", w.Code, w.Header().Get("Retry-After"), p)
	}
	for name, c := range map[string]struct {
		reason    string
		path, who string
		want      int
	}{
		"Other":   {"others of the same address are not limited by it", "/absent", "bob", 404},
		"Unknown": {"nor is the address of an unauthenticated caller", "/absent", "", 401},
		"Health":  {"health is asked for by machines", "/healthz", "", 200},
		"Metrics": {"and so are metrics", "/metrics", "", 200},
	} {
		if got := status(c.path, c.who); got != c.want {
			t.Errorf("%s: %s: %d, want %d", name, c.reason, got, c.want)
		}
	}
	status("/absent", "")
	status("/docs", "") // is not what makes an address known, but counts
	if got := status("/absent", ""); got != 429 {
		t.Errorf("an address that fails often is %d", got)
	}
	if got := status("/docs", ""); got != 429 {
		t.Errorf("what is open is limited by address: %d", got)
	}
	if got := status("/healthz", ""); got != 200 {
		t.Errorf("health is limited: %d", got)
	}
	b.take()
	for range 100 {
		status("/absent", "ann")
	}
	entries := b.take()
	if len(entries) != 9 { // one was recorded above
		t.Errorf("100 refusals have %d entries, want those of a burst", len(entries))
	}
}

// TestRefusalsThatAreMissed checks that what is not recorded is counted.

func TestLimiter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)
	l := northbound.NewLimiter(northbound.Limit{Rate: 2}, func() time.Time { return now })
	for i := range 4 {
		if err := l.Take("a"); err != nil {
			t.Fatalf("request %d of the burst: %v", i, err)
		}
	}
	err := l.Take("a")
	if nf.KindOf(err) != nf.TooManyRequests || nf.RetryAfterOf(err) != 500*time.Millisecond {
		t.Errorf("the next: %v, again after %s", err, nf.RetryAfterOf(err))
	}
	for range 100 {
		_ = l.Take("a") // who insists does not wait the longer
	}
	now = now.Add(nf.RetryAfterOf(err))
	if err := l.Take("a"); err != nil {
		t.Errorf("after that time: %v", err)
	}
	if err := l.Take("b"); err != nil {
		t.Errorf("another client: %v", err)
	}
	for remote, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1", "[2001:db8::1]:5": "2001:db8::/64", "[2001:db8::ffff:1]:7": "2001:db8::/64", "[::ffff:192.0.2.1]:5": "192.0.2.1", "@": "unknown",
	} {
		if got := northbound.ClientOf(&http.Request{RemoteAddr: remote}); got != want {
			t.Errorf("%s is %s, want %s", remote, got, want)
		}
	}
}

// TestLimiterRemembers asks as many clients as are tracked, one of them twice.
func TestLimiterRemembers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC)
	l := northbound.NewLimiter(northbound.Limit{Rate: 0.01, Burst: 1, Clients: 4}, func() time.Time { return now })
	for _, first := range []string{"a", "b", "c", "d"} {
		if err := l.Take(first); err != nil {
			t.Fatalf("the first request of %s: %v", first, err)
		}
	}
	for _, again := range []string{"b", "a"} {
		if err := l.Take(again); nf.KindOf(err) != nf.TooManyRequests {
			t.Errorf("%s was forgotten, although only as many clients ask as are tracked: %v", again, err)
		}
	}
}
