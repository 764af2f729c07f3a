package telemetry

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Sources tell what is so at the moment. Each is asked at every scrape, by
// several goroutines when there are several scrapes, so it answers at once and
// from memory. What has no source is not shown.
type Sources struct {
	Operations  func() []nf.Operation            // that have not ended, as far as this replica holds them
	Queue       func() int                       // operations that wait for a worker of this replica
	Replicas    func() int                       // replicas that this one sees alive, itself included
	Regions     func() map[string]nf.RegionState // every registered region by its id; nil: not known at the moment
	Certificate func() time.Time                 // when the certificate of the service expires; zero: it has none
	Sealed      func() map[string]int            // records by the key that they are sealed with
	Store       func() StoreSpace                // how full the store is
	Broken      func() map[string]int64          // new versions of files that could not be used, by what they hold: "rules"
}

// StoreSpace is how full the store is. Fields that are zero are not shown, and
// without a Size nothing is.
type StoreSpace struct {
	Size, InUse, Quota int64     // bytes
	Compacted          time.Time // when history was last removed
	Full               bool      // writes are refused
}

// Watch shows what the sources tell, from the next scrape on. It fails when a
// source of that sort is watched already.
func (m *Metrics) Watch(s Sources) error {
	var all []prometheus.Collector
	if s.Operations != nil {
		all = append(all, operationGauges(s.Operations))
	}
	if s.Queue != nil {
		all = append(all, counted("k8splugin_queue_depth", "Operations that this replica holds and has no worker for yet.", s.Queue))
	}
	if s.Replicas != nil {
		all = append(all, counted("k8splugin_replicas_alive", "Replicas of the service that this one sees alive, itself included.", s.Replicas))
	}
	if s.Regions != nil {
		all = append(all, m.regionGauges(s.Regions))
	}
	if s.Certificate != nil {
		all = append(all, certificateGauge(s.Certificate))
	}
	if s.Sealed != nil {
		all = append(all, sealedGauge(s.Sealed))
	}
	if s.Store != nil {
		all = append(all, storeGauges(s.Store))
	}
	if s.Broken != nil {
		all = append(all, brokenCounter(s.Broken))
	}
	for _, c := range all {
		if err := m.registry.Register(c); err != nil {
			return fmt.Errorf("cannot register the metrics: %w", err)
		}
	}
	return nil
}

// operationGauges tell how many operations there are and how old they are.
func operationGauges(operations func() []nf.Operation) *asked {
	number := desc("k8splugin_operations_unfinished", "Operations that have not ended, by state (queued, running, or waiting for their region) and region, as far as this replica holds them.", "state", "region")
	oldest := desc("k8splugin_operation_oldest_age_seconds", "Time since the operation that has been longest in the state came into it; 0 when there is none.", "state")
	overdue := desc("k8splugin_operations_overdue", "Operations that have not ended though their deadline has passed, those left out that were asked to be patient.")
	return &asked{
		descs: []*prometheus.Desc{number, oldest, overdue},
		collect: func(show func(*prometheus.Desc, float64, ...string)) {
			now, late := time.Now(), 0
			numbers, ages := map[[2]string]int{}, map[string]time.Duration{}
			for _, op := range operations() {
				state, since := phase(op)
				numbers[[2]string{state, op.Region}]++
				ages[state] = max(ages[state], now.Sub(since))
				if deadline := deadlineOf(op); !op.Patient && !deadline.IsZero() && now.After(deadline) {
					late++
				}
			}
			for labels, n := range numbers {
				show(number, float64(n), labels[:]...)
			}
			for _, state := range phases {
				show(oldest, ages[state].Seconds(), state)
			}
			show(overdue, float64(late))
		},
	}
}

// phases are the states of an operation that has not ended, as they are shown.
var phases = [...]string{"queued", "running", "waiting"}

// phase returns an operation's state and when it came into it.
func phase(op nf.Operation) (string, time.Time) {
	switch {
	case op.Waiting != nil:
		return phases[2], op.Waiting.Since
	case op.State == nf.Running:
		return phases[1], op.Started
	default:
		return phases[0], op.Accepted
	}
}

func deadlineOf(op nf.Operation) time.Time {
	if op.Undoing {
		return op.UndoBy
	}
	return op.Deadline
}

func counted(name, help string, number func() int) *asked {
	d := desc(name, help)
	return &asked{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		show(d, float64(number()))
	}}
}

func certificateGauge(expires func() time.Time) *asked {
	d := desc("k8splugin_tls_certificate_expiry_timestamp_seconds", "When the certificate that the service shows its clients expires, in seconds since 1970; absent when it has none.")
	return &asked{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		showTime(show, d, expires())
	}}
}

func sealedGauge(records func() map[string]int) *asked {
	d := desc("k8splugin_sealed_records", "Records of the store by the key that they are sealed with, as last counted.", "key")
	return &asked{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for key, n := range records() {
			show(d, float64(n), key)
		}
	}}
}

// storeGauges tell how full the store is.
func storeGauges(space func() StoreSpace) *asked {
	size := desc("k8splugin_store_size_bytes", "Size of the store's database file; in a cluster, of the largest one.")
	inUse := desc("k8splugin_store_in_use_bytes", "Bytes of the store's database file that are in use; the others are free for new records.")
	quota := desc("k8splugin_store_quota_bytes", "Size of the store's database file above which it refuses writes; absent if the store does not report it.")
	full := desc("k8splugin_store_full", "1 if the store refuses writes because its quota is used up, else 0.")
	compacted := desc("k8splugin_store_compaction_timestamp_seconds", "When the store's history was last removed, in seconds since 1970; absent until this replica has seen it.")
	return &asked{
		descs: []*prometheus.Desc{size, inUse, quota, full, compacted},
		collect: func(show func(*prometheus.Desc, float64, ...string)) {
			s := space()
			if s.Size == 0 {
				return
			}
			show(size, float64(s.Size))
			show(inUse, float64(s.InUse))
			if s.Quota > 0 {
				show(quota, float64(s.Quota))
			}
			value := 0.0
			if s.Full {
				value = 1
			}
			show(full, value)
			showTime(show, compacted, s.Compacted)
		},
	}
}

func brokenCounter(versions func() map[string]int64) *asked {
	d := desc("k8splugin_access_reload_failures_total", "New versions of the files that access is decided by which could not be used, by what they hold; the former version stays in force.", "file")
	return &asked{descs: []*prometheus.Desc{d}, counter: true, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for file, n := range versions() {
			show(d, float64(n), file)
		}
	}}
}

// asked is a collector that asks its source at every scrape.
type asked struct {
	descs   []*prometheus.Desc
	counter bool // what it shows only grows
	collect func(show func(d *prometheus.Desc, value float64, labels ...string))
}

var _ prometheus.Collector = (*asked)(nil)

// Describe implements prometheus.Collector.
func (a *asked) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range a.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (a *asked) Collect(ch chan<- prometheus.Metric) {
	kind := prometheus.GaugeValue
	if a.counter {
		kind = prometheus.CounterValue
	}
	a.collect(func(d *prometheus.Desc, value float64, labels ...string) {
		for i := range labels {
			labels[i] = strings.ToValidUTF8(labels[i], "?") // anything else would fail the whole scrape
		}
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	})
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}
