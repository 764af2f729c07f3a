package outbox

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/delay"
)

// Policy says when a request has succeeded, when it is retried, and when it is
// given up. A field that is zero has its default.
//
// With the defaults, the last attempt is about 14 hours after the first. The time that a
// request waits for a target that does not respond is no attempt. So a request that waits is
// also given up when it is three days old, or twice as old as its attempts take.
type Policy struct {
	Success  []int         `json:"success,omitempty"`  // statuses that are a success in addition to 2xx
	Final    []int         `json:"final,omitempty"`    // statuses after which the request is given up at once; default: none
	Attempts int           `json:"attempts,omitempty"` // maximum number of attempts; default 20
	Within   time.Duration `json:"within,omitempty"`   // maximum time from the first attempt to the last; default: no limit
	First    time.Duration `json:"first,omitempty"`    // pause after the first failure, doubled after each further one; default 1 s
	Longest  time.Duration `json:"longest,omitempty"`  // maximum pause; default 2 h, and not less than First
}

// maxPause limits the times of a policy.
const maxPause = 366 * 24 * time.Hour

func (p Policy) filled() Policy {
	p.Attempts = cmp.Or(p.Attempts, 20)
	p.First = cmp.Or(p.First, time.Second)
	p.Longest = max(cmp.Or(p.Longest, 2*time.Hour), p.First)
	return p
}

// check returns an error if the policy has an invalid field.
func (p Policy) check() error {
	status := func(s int) bool { return s < 100 || s > 599 }
	switch {
	case p.Attempts < 0 || p.Within < 0 || p.First < 0 || p.Longest < 0:
		return errors.New("a number or time of its policy is negative")
	case max(p.Within, p.First, p.Longest) > maxPause:
		return errors.New("a time of its policy is longer than 366 days")
	case slices.ContainsFunc(slices.Concat(p.Success, p.Final), status):
		return errors.New("a status of its policy is not between 100 and 599")
	case slices.ContainsFunc(p.Final, p.succeeds):
		return errors.New("a status of its policy is both a success and final")
	}
	return nil
}

// succeeds reports whether a status is a success.
func (p Policy) succeeds(status int) bool {
	return status >= 200 && status < 300 || slices.Contains(p.Success, status)
}

// retries reports whether a failed request is sent again at the due time. The
// status is that of the last response, or 0 if there was none.
func (p Policy) retries(d Delivery, status int, due time.Time) bool {
	p = p.filled()
	return !slices.Contains(p.Final, status) && d.Attempts < p.Attempts && (p.Within == 0 || due.Sub(d.Started) <= p.Within)
}

// shortestAge is the age at which a request that waits may be given up.
const shortestAge = 3 * 24 * time.Hour

// age returns the age at which a request that waits is given up, whatever has delayed it.
func (p Policy) age() time.Duration {
	p = p.filled()
	var all time.Duration
	for n := 1; n < p.Attempts && all < maxPause; n++ {
		all += delay.Doubled(p.First, p.Longest, n-1)
	}
	return max(shortestAge, 2*all)
}

// pause returns the delay after the nth failure. It is random within 25 %, so
// that simultaneous failures are not retried simultaneously.
func (p Policy) pause(n int, random func(time.Duration) time.Duration) time.Duration {
	p = p.filled()
	d := delay.Doubled(p.First, p.Longest, n-1)
	return d*3/4 + random(d/2)
}

// longestPause returns the limit of pause.
func (p Policy) longestPause() time.Duration { return p.filled().Longest * 5 / 4 }
