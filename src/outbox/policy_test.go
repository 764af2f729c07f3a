package outbox

import (
	"fmt"
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason      string
		policy      Policy
		least, most time.Duration // from the first attempt to the last
	}{
		"Default": {"about 14 hours", Policy{}, 8 * time.Hour, 24 * time.Hour},
		"Short":   {"the pauses are the request's", Policy{Attempts: 4, First: 10 * time.Second, Longest: 30 * time.Second}, 45 * time.Second, 75 * time.Second},
		"Long":    {"the first pause may be longer than the longest by default", Policy{Attempts: 2, First: 4 * time.Hour}, 3 * time.Hour, 5 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var least, most time.Duration
			filled := tc.policy.filled()
			for n := 1; n < filled.Attempts; n++ {
				low := tc.policy.pause(n, func(time.Duration) time.Duration { return 0 })
				high := tc.policy.pause(n, func(d time.Duration) time.Duration { return d })
				if low < filled.First/2 || low > high || high > filled.Longest*5/4 {
					t.Errorf("after failure %d: between %s and %s", n, low, high)
				}
				least, most = least+low, most+high
			}
			if least < tc.least || most > tc.most {
				t.Errorf("%s: given up after %s to %s", tc.reason, least, most)
			}
		})
	}
}

func TestPolicyIsChecked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		policy Policy
		ok     bool
	}{
		"None":     {"each field has a default", Policy{}, true},
		"All":      {"a request has a policy of its own", Policy{[]int{404}, []int{410}, 3, time.Hour, time.Second, time.Minute}, true},
		"Attempts": {"less than no attempt", Policy{Attempts: -1}, false},
		"Within":   {"a time in the past", Policy{Within: -1}, false},
		"First":    {"likewise", Policy{First: -1}, false},
		"Longest":  {"likewise", Policy{Longest: -1}, false},
		"Years":    {"a time that would overflow when it is doubled", Policy{First: 1 << 62}, false},
		"Status":   {"not a status", Policy{Success: []int{0}}, false},
		"Final":    {"likewise", Policy{Final: []int{600}}, false},
		"Both":     {"a success is final in another way", Policy{Success: []int{404}, Final: []int{404}}, false},
		"Both 2xx": {"likewise", Policy{Final: []int{204}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tc.policy.check(); (err == nil) != tc.ok {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()
	three := map[string]bool{"a": true, "b": true, "c": true}
	two := map[string]bool{"a": true, "c": true}
	count := map[string]int{}
	for i := range 300 {
		shard := fmt.Sprint("shard-", i)
		before, after := chosen(shard, three), chosen(shard, two)
		count[before]++
		if before != "b" && before != after {
			t.Errorf("%s falls from %s to %s, and both are there", shard, before, after)
		}
	}
	for id := range three {
		if count[id] < 60 {
			t.Errorf("%s serves %d of 300 shards, want about 100", id, count[id])
		}
	}
	if got := chosen("x", nil); got != "" {
		t.Errorf("nobody is %q", got)
	}
}
