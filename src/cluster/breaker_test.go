package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// breakerTest is a breaker with its own clock.
type breakerTest struct {
	*breaker

	t   *testing.T
	now time.Time
}

func newBreakerTest(t *testing.T) *breakerTest {
	bt := &breakerTest{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	bt.breaker = &breaker{clock: func() time.Time { return bt.now }, threshold: 5, state: nf.BreakerClosed}
	return bt
}

func (bt *breakerTest) pass(d time.Duration) { bt.now = bt.now.Add(d) }

func (bt *breakerTest) admitted() ticket {
	bt.t.Helper()
	got, err := bt.admit(false)
	if err != nil {
		bt.t.Fatalf("the request is held back: %v", err)
	}
	return got
}

// fail is n requests, one after the other, each without an answer for so long.
func (bt *breakerTest) fail(n int, each time.Duration) {
	bt.t.Helper()
	for range n {
		t := bt.admitted()
		bt.pass(each)
		bt.failed(t, errors.New("nobody is there"))
	}
}

func (bt *breakerTest) want(reason string, state nf.BreakerState) {
	bt.t.Helper()
	if got, _ := bt.breaker.now(); got != state {
		bt.t.Fatalf("%s: the breaker is %s, want %s", reason, got, state)
	}
}

func TestBreakerOpens(t *testing.T) {
	cases := map[string]struct {
		reason string
		events func(bt *breakerTest)
		want   nf.BreakerState
	}{
		"at rest": {"nothing happened", func(*breakerTest) {}, nf.BreakerClosed},
		"enough":  {"five failures in a row, for three seconds", func(bt *breakerTest) { bt.fail(5, 600*time.Millisecond) }, nf.BreakerOpen},
		"too few": {"four failures, however long", func(bt *breakerTest) { bt.fail(4, time.Hour) }, nf.BreakerClosed},
		"too quick": {
			"many failures in a moment: an API server that restarts is not to be left alone",
			func(bt *breakerTest) { bt.fail(100, 29*time.Millisecond) }, nf.BreakerClosed,
		},
		"quick, then late": {"the time counts from the first", func(bt *breakerTest) { bt.fail(100, time.Millisecond); bt.fail(1, 3*time.Second) }, nf.BreakerOpen},
		"an answer between": {
			"an answer, whatever it says, begins the count anew",
			func(bt *breakerTest) { bt.fail(4, time.Minute); bt.answered(); bt.fail(4, time.Minute) }, nf.BreakerClosed,
		},
		"together": {
			"requests that waited for long at the same time have waited long enough",
			func(bt *breakerTest) {
				tickets := []ticket{bt.admitted(), bt.admitted(), bt.admitted(), bt.admitted(), bt.admitted()}
				bt.pass(10 * time.Second)
				for _, ticket := range tickets {
					bt.failed(ticket, errors.New("timeout"))
				}
			}, nf.BreakerOpen,
		},
		"begun before the last answer": {
			"while others had answers, there was no silence",
			func(bt *breakerTest) {
				slow := bt.admitted()
				bt.pass(time.Minute)
				bt.answered()
				bt.failed(slow, errors.New("timeout"))
				bt.fail(4, time.Millisecond)
			}, nf.BreakerClosed,
		},
		"an older request fails later": {
			"the silence began with the request that began first",
			func(bt *breakerTest) {
				old := bt.admitted()
				bt.pass(10 * time.Second)
				bt.fail(4, time.Millisecond)
				bt.failed(old, errors.New("timeout"))
			}, nf.BreakerOpen,
		},
		"abandoned": {
			"who does not wait for an answer cannot say that there was none",
			func(bt *breakerTest) {
				for range 10 {
					ticket := bt.admitted()
					bt.pass(time.Second)
					bt.abandoned(ticket)
				}
			}, nf.BreakerClosed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bt := newBreakerTest(t)
			tc.events(bt)
			bt.want(tc.reason, tc.want)
		})
	}
}

// opened is a breaker that has just opened.
func opened(t *testing.T) *breakerTest {
	bt := newBreakerTest(t)
	bt.fail(5, time.Second)
	bt.want("after five failures", nf.BreakerOpen)
	return bt
}

func TestBreakerHoldsBack(t *testing.T) {
	bt := opened(t)
	_, err := bt.admit(false)
	held, ok := errors.AsType[*breakerOpenError](err)
	if !ok || held.after <= firstClosure/2 || held.after > firstClosure {
		t.Fatalf("a request is held back and told when to come again: %v", err)
	}
	if !strings.Contains(err.Error(), "nobody is there") {
		t.Errorf("the error tells of the last failure: %v", err)
	}
	bt.pass(held.after)
	if _, err := bt.admit(true); err == nil {
		t.Error("a watch is no probe")
	}
	bt.admitted()
	bt.want("while the probe is under way", nf.BreakerHalfOpen)
	if _, err := bt.admit(false); err == nil {
		t.Error("there is one probe at a time")
	}
}

func TestBreakerWaitsLonger(t *testing.T) {
	bt := opened(t)
	for want := firstClosure; want < 10*time.Minute; want *= 2 {
		want := min(want, longestClosed)
		_, retry := bt.breaker.now()
		if wait := retry.Sub(bt.now); wait > want || wait < want*3/4 {
			t.Fatalf("the breaker is open for %v, want %v less a random part", wait, want)
		}
		bt.now = retry
		bt.failed(bt.admitted(), errors.New("still nobody"))
		bt.want("after a probe that failed", nf.BreakerOpen)
	}
	_, retry := bt.breaker.now()
	bt.now = retry
	bt.admitted()
	bt.answered()
	bt.want("after a probe that had an answer", nf.BreakerClosed)
	bt.fail(5, time.Second)
	if _, retry := bt.breaker.now(); retry.Sub(bt.now) > firstClosure {
		t.Errorf("after an answer the pauses begin anew: %v", retry.Sub(bt.now))
	}
}

func TestBreakerLateWords(t *testing.T) {
	bt := newBreakerTest(t)
	late, later := bt.admitted(), bt.admitted()
	bt.fail(5, time.Second)
	_, before := bt.breaker.now()
	bt.failed(late, errors.New("late"))
	if _, after := bt.breaker.now(); after != before {
		t.Error("a failure of a request from before must not make the pause longer")
	}
	bt.now = before
	probe := bt.admitted()
	bt.failed(later, errors.New("later"))
	bt.want("the probe decides, not what fails beside it", nf.BreakerHalfOpen)
	bt.abandoned(probe)
	bt.want("a probe that nobody waited for", nf.BreakerOpen)
	bt.admitted() // the next request is the probe
	bt.answered() // of a request from before
	bt.want("an answer shows that the region is back, whoever asked", nf.BreakerClosed)
}
