package outbox

import (
	"fmt"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	var least, most time.Duration
	for n := 1; n < attempts; n++ {
		low := backoff(n, func(time.Duration) time.Duration { return 0 })
		high := backoff(n, func(d time.Duration) time.Duration { return d })
		if low < firstPause/2 || low > high || high > longestPause*5/4 {
			t.Errorf("after failure %d: between %s and %s", n, low, high)
		}
		least, most = least+low, most+high
	}
	if least < 8*time.Hour || most > 24*time.Hour {
		t.Errorf("a request is given up after %s to %s, want about 14 hours", least, most)
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
