package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// trial is a breaker with a clock of its own.
type trial struct {
	*breaker

	t   *testing.T
	now time.Time
}

func newTrial(t *testing.T) *trial {
	tr := &trial{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	tr.breaker = &breaker{clock: func() time.Time { return tr.now }, threshold: 5, state: nf.BreakerClosed}
	return tr
}

func (tr *trial) pass(d time.Duration) { tr.now = tr.now.Add(d) }

func (tr *trial) admitted() ticket {
	tr.t.Helper()
	got, err := tr.admit(false)
	if err != nil {
		tr.t.Fatalf("the request is held back: %v", err)
	}
	return got
}

// fail is n requests, one after the other, each without an answer for so long.
func (tr *trial) fail(n int, each time.Duration) {
	tr.t.Helper()
	for range n {
		t := tr.admitted()
		tr.pass(each)
		tr.failed(t, errors.New("nobody is there"))
	}
}

func (tr *trial) want(reason string, state nf.BreakerState) {
	tr.t.Helper()
	if got, _ := tr.breaker.now(); got != state {
		tr.t.Fatalf("%s: the breaker is %s, want %s", reason, got, state)
	}
}

func TestBreakerOpens(t *testing.T) {
	cases := map[string]struct {
		reason string
		events func(tr *trial)
		want   nf.BreakerState
	}{
		"at rest": {"nothing happened", func(*trial) {}, nf.BreakerClosed},
		"enough":  {"five failures in a row, for three seconds", func(tr *trial) { tr.fail(5, 600*time.Millisecond) }, nf.BreakerOpen},
		"too few": {"four failures, however long", func(tr *trial) { tr.fail(4, time.Hour) }, nf.BreakerClosed},
		"too quick": {
			"many failures in a moment: an API server that restarts is not to be left alone",
			func(tr *trial) { tr.fail(100, 29*time.Millisecond) }, nf.BreakerClosed,
		},
		"quick, then late": {"the time counts from the first", func(tr *trial) { tr.fail(100, time.Millisecond); tr.fail(1, 3*time.Second) }, nf.BreakerOpen},
		"an answer between": {
			"an answer, whatever it says, begins the count anew",
			func(tr *trial) { tr.fail(4, time.Minute); tr.answered(); tr.fail(4, time.Minute) }, nf.BreakerClosed,
		},
		"together": {
			"requests that waited for long at the same time have waited long enough",
			func(tr *trial) {
				tickets := []ticket{tr.admitted(), tr.admitted(), tr.admitted(), tr.admitted(), tr.admitted()}
				tr.pass(10 * time.Second)
				for _, ticket := range tickets {
					tr.failed(ticket, errors.New("timeout"))
				}
			}, nf.BreakerOpen,
		},
		"begun before the last answer": {
			"while others had answers, there was no silence",
			func(tr *trial) {
				slow := tr.admitted()
				tr.pass(time.Minute)
				tr.answered()
				tr.failed(slow, errors.New("timeout"))
				tr.fail(4, time.Millisecond)
			}, nf.BreakerClosed,
		},
		"an older request fails later": {
			"the silence began with the request that began first",
			func(tr *trial) {
				old := tr.admitted()
				tr.pass(10 * time.Second)
				tr.fail(4, time.Millisecond)
				tr.failed(old, errors.New("timeout"))
			}, nf.BreakerOpen,
		},
		"abandoned": {
			"who does not wait for an answer cannot say that there was none",
			func(tr *trial) {
				for range 10 {
					ticket := tr.admitted()
					tr.pass(time.Second)
					tr.abandoned(ticket)
				}
			}, nf.BreakerClosed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tr := newTrial(t)
			tc.events(tr)
			tr.want(tc.reason, tc.want)
		})
	}
}

// opened is a breaker that has just opened.
func opened(t *testing.T) *trial {
	tr := newTrial(t)
	tr.fail(5, time.Second)
	tr.want("after five failures", nf.BreakerOpen)
	return tr
}

func TestBreakerHoldsBack(t *testing.T) {
	tr := opened(t)
	_, err := tr.admit(false)
	held, ok := errors.AsType[*shut](err)
	if !ok || held.after <= firstClosure/2 || held.after > firstClosure {
		t.Fatalf("a request is held back and told when to come again: %v", err)
	}
	if !strings.Contains(err.Error(), "nobody is there") {
		t.Errorf("the error tells of the last failure: %v", err)
	}
	tr.pass(held.after)
	if _, err := tr.admit(true); err == nil {
		t.Error("a watch is no probe")
	}
	tr.admitted()
	tr.want("while the probe is under way", nf.BreakerHalfOpen)
	if _, err := tr.admit(false); err == nil {
		t.Error("there is one probe at a time")
	}
}

func TestBreakerWaitsLonger(t *testing.T) {
	tr := opened(t)
	for want := firstClosure; want < 10*time.Minute; want *= 2 {
		want := min(want, longestClosed)
		_, retry := tr.breaker.now()
		if wait := retry.Sub(tr.now); wait > want || wait < want*3/4 {
			t.Fatalf("the breaker is open for %v, want %v less a random part", wait, want)
		}
		tr.now = retry
		tr.failed(tr.admitted(), errors.New("still nobody"))
		tr.want("after a probe that failed", nf.BreakerOpen)
	}
	_, retry := tr.breaker.now()
	tr.now = retry
	tr.admitted()
	tr.answered()
	tr.want("after a probe that had an answer", nf.BreakerClosed)
	tr.fail(5, time.Second)
	if _, retry := tr.breaker.now(); retry.Sub(tr.now) > firstClosure {
		t.Errorf("after an answer the pauses begin anew: %v", retry.Sub(tr.now))
	}
}

func TestBreakerLateWords(t *testing.T) {
	tr := newTrial(t)
	late, later := tr.admitted(), tr.admitted()
	tr.fail(5, time.Second)
	_, before := tr.breaker.now()
	tr.failed(late, errors.New("late"))
	if _, after := tr.breaker.now(); after != before {
		t.Error("a failure of a request from before must not make the pause longer")
	}
	tr.now = before
	probe := tr.admitted()
	tr.failed(later, errors.New("later"))
	tr.want("the probe decides, not what fails beside it", nf.BreakerHalfOpen)
	tr.abandoned(probe)
	tr.want("a probe that nobody waited for", nf.BreakerOpen)
	tr.admitted() // the next request is the probe
	tr.answered() // of a request from before
	tr.want("an answer shows that the region is back, whoever asked", nf.BreakerClosed)
}
