package telemetry

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// regionSeries are the vectors whose series bear a region. It removes the
// series of a region that is gone: regions come and go as long as the process
// runs, and a removed one must not be shown for ever.
type regionSeries struct {
	vectors []partial

	mu     sync.Mutex
	absent map[string]bool // regions that have series → whether the last look missed them
}

// partial is a vector that forgets the series with some labels.
type partial interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

func newRegionSeries(vectors ...partial) *regionSeries {
	return &regionSeries{vectors: vectors, absent: map[string]bool{}}
}

// touch notes that a region has series. It is called after they were made, so
// that whatever keep removes meanwhile is removed again.
func (s *regionSeries) touch(region string) {
	if region == "" {
		return // what is of no region stays
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.absent[region]; !ok {
		s.absent[region] = false
	}
}

// keep removes the series of regions that two looks in a row have missed. At the
// first look a new region may not have been known yet.
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

// regionGauges tell how each region is doing.
func (m *Metrics) regionGauges(regions func() map[string]nf.RegionState) *asked {
	condition := desc("k8splugin_region_condition", "Whether a region is in the condition: 1 for the one that it is in, else 0.", "region", "condition")
	breaker := desc("k8splugin_region_breaker_state", "Whether a region's circuit breaker is in the state: 1 for the one that it is in, else 0.", "region", "state")
	since := desc("k8splugin_region_condition_since_timestamp_seconds", "When a region came into its condition, in seconds since 1970.", "region")
	checked := desc("k8splugin_region_checked_timestamp_seconds", "When a region was last asked how it is, in seconds since 1970.", "region")
	expiry := desc("k8splugin_region_credential_expiry_timestamp_seconds", "When the credential of a region's kubeconfig expires, in seconds since 1970; absent when it does not, or nobody knows.", "region")
	return &asked{
		descs: []*prometheus.Desc{condition, breaker, since, checked, expiry},
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
				showTime(show, expiry, s.Credential.Expires, id)
			}
		},
	}
}

var (
	regionConditions = [...]nf.RegionCondition{nf.RegionUnknown, nf.RegionAvailable, nf.RegionExpiring, nf.RegionUnreachable}
	breakerStates    = [...]nf.BreakerState{nf.BreakerClosed, nf.BreakerHalfOpen, nf.BreakerOpen}
)

// showTime shows a time in seconds since 1970, and nothing when it is not set.
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
