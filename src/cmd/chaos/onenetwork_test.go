//go:build !race

package main

import (
	"strings"
	"testing"
	"time"
)

// TestOneNetwork lets 100 instances share one network while everything fails. With the race
// detector, so many instances make the servers slow; TestScenarios has shared networks, too.
func TestOneNetwork(t *testing.T) {
	o := testOptions(t)
	o.scenario, o.kills, o.duration, o.instances = scenarioNetwork, 12, time.Minute, 100
	o.lease, o.settle = 10*time.Second, 10*time.Minute
	if out := try(t, o); !strings.Contains(out, "users of one network") {
		t.Error("no network had all of them as users")
	}
}
