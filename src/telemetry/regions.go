package telemetry

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// regionSeries are the vectors whose series have the label region. It deletes
// the series of a deregistered region: the process may outlive many regions.
type regionSeries struct {
	vectors []partial

	mu     sync.Mutex
	absent map[string]bool // regions with series → whether the last call of keep missed them
}

// partial is a vector whose series can be deleted by some of their labels.
type partial interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

func newRegionSeries(vectors ...partial) *regionSeries {
	return &regionSeries{vectors: vectors, absent: map[string]bool{}}
}

// touch records that a region has series. It is called after they were created,
// so that a later keep deletes them even if one runs at the same time.
func (s *regionSeries) touch(region string) {
	if region == "" {
		return // series without a region stay
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.absent[region]; !ok {
		s.absent[region] = false
	}
}

// keep deletes the series of regions that were absent in two calls in a row. At
// the first call, a new region may not have been listed yet.
func (s *regionSeries) keep(present map[string]nf.RegionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for region, missed := range s.absent {
		_, here := present[region]
		if here || !missed {
			s.absent[region] = !here
			continue
		}
		delete(s.absent, region)
		for _, v := range s.vectors {
			v.DeletePartialMatch(prometheus.Labels{"region": region})
		}
	}
}

// regionGauges returns the gauges of the regions' states.
func (m *Metrics) regionGauges(regions func() map[string]nf.RegionState) *sourceCollector {
	condition := desc("k8splugin_region_condition", "1 if the region is in the condition, else 0.", "region", "condition")
	breaker := desc("k8splugin_region_breaker_state", "1 if the region's circuit breaker is in the state, else 0.", "region", "state")
	since := desc("k8splugin_region_condition_since_timestamp_seconds", "When the region entered its condition, in seconds since 1970.", "region")
	checked := desc("k8splugin_region_checked_timestamp_seconds", "When the region was last checked, in seconds since 1970.", "region")
	expiry := desc("k8splugin_region_credential_expiry_timestamp_seconds", "When the region's credential expires, in seconds since 1970; absent if it does not expire, its expiry is unknown, or the service renews it successfully.", "region")
	failing := desc("k8splugin_region_credential_renewal_failing_since_timestamp_seconds", "Since when the region's credential is not renewed, because its renewal fails or waits for an operator, in seconds since 1970; absent while it is renewed, or if it does not rotate.", "region")
	return &sourceCollector{
		descs: []*prometheus.Desc{condition, breaker, since, checked, expiry, failing},
		collect: func(show func(*prometheus.Desc, float64, ...string)) {
			states := regions()
			if states != nil {
				m.regions.keep(states)
			}
			for id, s := range states {
				for _, c := range regionConditions {
					show(condition, is(c == cmp.Or(s.Condition, nf.RegionUnknown)), id, string(c))
				}
				for _, b := range breakerStates {
					show(breaker, is(b == cmp.Or(s.Breaker, nf.BreakerClosed)), id, string(b))
				}
				showTime(show, since, s.Since, id)
				showTime(show, checked, s.Checked, id)
				showTime(show, failing, s.Credential.Failing, id)
				if !s.Credential.Rotates || !s.Credential.Failing.IsZero() {
					showTime(show, expiry, s.Credential.Expires, id)
				}
			}
		},
	}
}

var (
	regionConditions = [...]nf.RegionCondition{nf.RegionUnknown, nf.RegionAvailable, nf.RegionExpiring, nf.RegionUnreachable}
	breakerStates    = [...]nf.BreakerState{nf.BreakerClosed, nf.BreakerHalfOpen, nf.BreakerOpen}
)

// showTime shows a time in seconds since 1970, or nothing if it is zero.
func showTime(show func(*prometheus.Desc, float64, ...string), d *prometheus.Desc, t time.Time, labels ...string) {
	if !t.IsZero() {
		show(d, float64(t.UnixMilli())/1000, labels...)
	}
}

func is(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
