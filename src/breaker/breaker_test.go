package breaker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/breaker"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// fixture is a breaker with its own clock. Five failures in three seconds open
// it.
type fixture struct {
	*breaker.Breaker

	t   *testing.T
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.Breaker = breaker.New(breaker.Config{Clock: func() time.Time { return f.now }, Failures: 5, Silence: 3 * time.Second})
	return f
}

func (f *fixture) pass(d time.Duration) { f.now = f.now.Add(d) }

func (f *fixture) admitted() breaker.Ticket {
	f.t.Helper()
	got, err := f.Admit(true)
	if err != nil {
		f.t.Fatalf("the request is rejected: %v", err)
	}
	return got
}

// fail sends n requests one after the other, each without a response.
func (f *fixture) fail(n int, each time.Duration) {
	f.t.Helper()
	for range n {
		t := f.admitted()
		f.pass(each)
		f.Failed(t, "no route to host")
	}
}

func (f *fixture) want(reason string, state nf.BreakerState) {
	f.t.Helper()
	if got, _ := f.State(); got != state {
		f.t.Fatalf("%s: the breaker is %s, want %s", reason, got, state)
	}
}

// pause returns how long the breaker stays open.
func (f *fixture) pause() time.Duration {
	_, retry := f.State()
	return retry.Sub(f.now)
}

func TestOpens(t *testing.T) {
	cases := map[string]struct {
		reason string
		events func(f *fixture)
		want   nf.BreakerState
	}{
		"New":        {"nothing has happened", func(*fixture) {}, nf.BreakerClosed},
		"Open":       {"five failures in a row, in three seconds", func(f *fixture) { f.fail(5, 600*time.Millisecond) }, nf.BreakerOpen},
		"Few":        {"four failures, however long", func(f *fixture) { f.fail(4, time.Hour) }, nf.BreakerClosed},
		"Quick":      {"many failures in a moment: an API server that restarts responds soon", func(f *fixture) { f.fail(100, 29*time.Millisecond) }, nf.BreakerClosed},
		"Quick late": {"the time counts from the first failure", func(f *fixture) { f.fail(100, time.Millisecond); f.fail(1, 3*time.Second) }, nf.BreakerOpen},
		"Response":   {"a response starts the count again", func(f *fixture) { f.fail(4, time.Minute); f.Responded(); f.fail(4, time.Minute) }, nf.BreakerClosed},
		"Concurrent": {
			"requests that waited at the same time have waited long enough",
			func(f *fixture) {
				tickets := []breaker.Ticket{f.admitted(), f.admitted(), f.admitted(), f.admitted(), f.admitted()}
				f.pass(10 * time.Second)
				for _, ticket := range tickets {
					f.Failed(ticket, "timeout")
				}
			}, nf.BreakerOpen,
		},
		"Others respond": {
			"a request that began before the last response proves no longer silence",
			func(f *fixture) {
				slow := f.admitted()
				f.pass(time.Minute)
				f.Responded()
				f.Failed(slow, "timeout")
				f.fail(4, time.Millisecond)
			}, nf.BreakerClosed,
		},
		"Older": {
			"the silence began with the request that began first",
			func(f *fixture) {
				old := f.admitted()
				f.pass(10 * time.Second)
				f.fail(4, time.Millisecond)
				f.Failed(old, "timeout")
			}, nf.BreakerOpen,
		},
		"Abandoned": {
			"a request whose caller did not wait proves nothing",
			func(f *fixture) {
				for range 10 {
					ticket := f.admitted()
					f.pass(time.Second)
					f.Abandoned(ticket)
				}
			}, nf.BreakerClosed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tc.events(f)
			f.want(tc.reason, tc.want)
		})
	}
}

// newOpen returns a breaker that has just opened.
func newOpen(t *testing.T) *fixture {
	f := newFixture(t)
	f.fail(5, time.Second)
	f.want("after five failures", nf.BreakerOpen)
	return f
}

func TestRejects(t *testing.T) {
	f := newOpen(t)
	_, err := f.Admit(true)
	open, ok := errors.AsType[*breaker.OpenError](err)
	if !ok || open.After <= breaker.FirstPause/2 || open.After > breaker.FirstPause {
		t.Fatalf("got %v, want an error that says when to try again", err)
	}
	if !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("%v does not name the last failure", err)
	}
	f.pass(open.After)
	if _, err := f.Admit(false); err == nil {
		t.Error("a request that cannot be the probe is admitted")
	}
	if !f.admitted().Probe {
		t.Error("the first request after the pause is not the probe")
	}
	f.want("while the probe is under way", nf.BreakerHalfOpen)
	_, err = f.Admit(true)
	if open, ok := errors.AsType[*breaker.OpenError](err); !ok || open.After <= 0 {
		t.Errorf("got %v, want one probe at a time", err)
	}
}

func TestPauses(t *testing.T) {
	f := newOpen(t)
	for want := breaker.FirstPause; want < 10*breaker.LongestPause; want *= 2 {
		want := min(want, breaker.LongestPause)
		if pause := f.pause(); pause > want || pause < want*3/4 {
			t.Fatalf("the breaker is open for %v, want %v less a random part", pause, want)
		}
		f.pass(f.pause())
		if !f.Failed(f.admitted(), "timeout") {
			t.Error("Failed does not report that the breaker is open")
		}
		f.want("after a failed probe", nf.BreakerOpen)
	}
	f.pass(f.pause())
	f.admitted()
	f.Responded()
	f.want("after a probe with a response", nf.BreakerClosed)
	f.fail(5, time.Second)
	if pause := f.pause(); pause > breaker.FirstPause {
		t.Errorf("after a response the breaker is open for %v", pause)
	}
}

func TestLateResults(t *testing.T) {
	f := newFixture(t)
	late, later := f.admitted(), f.admitted()
	f.fail(5, time.Second)
	before := f.pause()
	f.Failed(late, "timeout")
	if after := f.pause(); after != before {
		t.Errorf("an earlier request changes the pause from %v to %v", before, after)
	}
	f.pass(before)
	probe := f.admitted()
	f.Failed(later, "timeout")
	f.want("only the probe decides", nf.BreakerHalfOpen)
	f.Abandoned(probe)
	f.want("after an abandoned probe", nf.BreakerOpen)
	if !f.admitted().Probe {
		t.Error("the next request is not the probe")
	}
	f.Responded() // of an earlier request
	f.want("any response closes it", nf.BreakerClosed)
}
