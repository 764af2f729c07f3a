package telemetry

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Sources provide the current state. Each function is called at every scrape,
// and by several goroutines if there are concurrent scrapes, so it must return
// at once and from memory. Metrics without a source are not shown.
type Sources struct {
	Operations  func() []nf.Operation            // unfinished operations of this replica
	Queue       func() int                       // operations that wait for a worker of this replica
	Replicas    func() int                       // live replicas that this one knows, including itself
	Instances   func() []nf.InstanceCount        // number of instances by state and health
	Networks    func() []nf.SharedCount          // number of networks by region, driver and state
	Volumes     func() []nf.SharedCount          // number of volumes by region and state
	Listings    func() map[nf.ListingState]int   // number of subjects by their state in A&AI; nil: another replica writes
	Alarms      func() []nf.AlarmCount           // number of alarms of VNFs by severity and acknowledgement; nil: another replica raises them
	Drifts      func() []nf.DriftCount           // number of instances by policy and state of drift
	Regions     func() map[string]nf.RegionState // every registered region by its id; nil: currently unknown
	Certificate func() time.Time                 // expiry of the service's certificate; zero: none
	Mesh        func() MeshCertificate           // the service's certificate from istiod
	Sealed      func() map[string]int            // records by the key that encrypts them
	Store       func() StoreSpace                // usage of the store
	Index       func() map[string]IndexStatus    // the index of lists with filters, by table
	Targets     func() map[nf.BreakerState]int   // recent targets of notifications by the state of their circuit breaker
	Broken      func() map[string]int64          // new versions of files that could not be used, by content: "rules"
}

// MeshCertificate is the state of the service's certificate from istiod. Zero times
// are not shown: there is no certificate yet.
type MeshCertificate struct {
	Obtained, Expires time.Time
	Failures          int64 // requests for a certificate that failed
}

// StoreSpace is the usage of the store. Zero fields are not shown, except InUse
// and Full; without a Size nothing is shown.
type StoreSpace struct {
	Size, InUse, Quota int64     // bytes
	Compacted          time.Time // when history was last removed
	Full               bool      // writes are refused
}

// IndexStatus is the state of the index of a table.
type IndexStatus struct {
	Records int
	Filled  bool // it is in use
}

// Watch shows the values of the sources from the next scrape on. It returns an
// error if a source of the same kind is already watched.
func (m *Metrics) Watch(s Sources) error {
	var all []prometheus.Collector
	if s.Operations != nil {
		all = append(all, operationGauges(s.Operations))
	}
	if s.Queue != nil {
		all = append(all, counted("k8splugin_queue_depth", "Operations of this replica that wait for a worker.", s.Queue))
	}
	if s.Replicas != nil {
		all = append(all, counted("k8splugin_replicas_alive", "Replicas of the service that this replica sees alive, including itself.", s.Replicas))
	}
	if s.Instances != nil {
		all = append(all, instanceGauge(s.Instances))
	}
	if s.Networks != nil {
		all = append(all, networkGauge(s.Networks))
	}
	if s.Listings != nil {
		all = append(all, listingGauge(s.Listings))
	}
	if s.Volumes != nil {
		all = append(all, volumeGauge(s.Volumes))
	}
	if s.Drifts != nil {
		all = append(all, driftGauge(s.Drifts))
	}
	if s.Alarms != nil {
		all = append(all, alarmGauge(s.Alarms))
	}
	if s.Regions != nil {
		all = append(all, m.regionGauges(s.Regions))
	}
	if s.Certificate != nil {
		all = append(all, certificateGauge(s.Certificate))
	}
	if s.Mesh != nil {
		all = append(all, meshGauges(s.Mesh), meshCounter(s.Mesh))
	}
	if s.Sealed != nil {
		all = append(all, sealedGauge(s.Sealed))
	}
	if s.Store != nil {
		all = append(all, storeGauges(s.Store))
	}
	if s.Index != nil {
		all = append(all, indexGauges(s.Index))
	}
	if s.Targets != nil {
		all = append(all, targetGauge(s.Targets))
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

// operationGauges returns the gauges of the number and age of operations.
func operationGauges(operations func() []nf.Operation) *sourceCollector {
	number := desc("k8splugin_operations_unfinished", "Operations of this replica that have not ended, by state (queued, running, or waiting for their region) and region.", "state", "region")
	oldest := desc("k8splugin_operation_oldest_age_seconds", "Longest time that an operation has been in the state; 0 if no operation is in it.", "state")
	overdue := desc("k8splugin_operations_overdue", "Operations that have not ended and are past their deadline, excluding those that were asked to wait for their region.")
	return &sourceCollector{
		descs: []*prometheus.Desc{number, oldest, overdue},
		collect: func(show func(*prometheus.Desc, float64, ...string)) {
			now, late := time.Now(), 0
			numbers, ages := map[[2]string]int{}, map[string]time.Duration{}
			for _, op := range operations() {
				state, since := phase(op)
				numbers[[2]string{state, regionOf(op)}]++
				ages[state] = max(ages[state], now.Sub(since))
				if deadline := deadlineOf(op); !op.WaitForRegion && !deadline.IsZero() && now.After(deadline) {
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

func instanceGauge(counts func() []nf.InstanceCount) *sourceCollector {
	d := desc("k8splugin_instances", "VNF instances by region, state and health (healthy, unhealthy or unknown), as this replica sees them. Every replica counts all instances.", "region", "state", "health")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for _, c := range counts() {
			show(d, float64(c.Number), c.Region, string(c.State), string(c.Health))
		}
	}}
}

func networkGauge(counts func() []nf.SharedCount) *sourceCollector {
	d := desc("k8splugin_networks", "Virtual networks by region, driver and state, as last counted. Every replica counts all networks.", "region", "driver", "state")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for _, c := range counts() {
			show(d, float64(c.Number), c.Region, c.Driver, string(c.State))
		}
	}}
}

func volumeGauge(counts func() []nf.SharedCount) *sourceCollector {
	d := desc("k8splugin_volumes", "Volumes by region and state, as last counted. Every replica counts all volumes.", "region", "state")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for _, c := range counts() {
			show(d, float64(c.Number), c.Region, string(c.State))
		}
	}}
}

func listingGauge(counts func() map[nf.ListingState]int) *sourceCollector {
	d := desc("k8splugin_aai_subjects", "VNF instances, networks and cloud regions by their state in A&AI: clean, dirty, waiting or parked; and, as orphaned, instances that do not exist and of which SO's adapter has left objects. Only the replica that writes to A&AI has a value.", "state")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for state, n := range counts() {
			show(d, float64(n), string(state))
		}
	}}
}

func driftGauge(counts func() []nf.DriftCount) *sourceCollector {
	d := desc("k8splugin_instances_drift", "VNF instances that are compared with their region, by region, policy (warn or correct) and state (none, drifted, contested or unknown), as this replica sees them. Every replica counts all instances.", "region", "mode", "state")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for _, c := range counts() {
			show(d, float64(c.Number), c.Region, string(c.Mode), string(c.State))
		}
	}}
}

func alarmGauge(counts func() []nf.AlarmCount) *sourceCollector {
	d := desc("k8splugin_vnf_alarms", "Alarms of VNFs of SOL003 that are not cleared, by perceived severity (critical or major) and acknowledgement (true or false), as of the last look at the VNFs. One replica raises alarms; it counts all of them, and the others have no value.", "severity", "acknowledged")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for _, c := range counts() {
			show(d, float64(c.Number), strings.ToLower(string(c.Severity)), strconv.FormatBool(c.Acknowledged))
		}
	}}
}

// phases are the shown states of an unfinished operation.
var phases = [...]string{"queued", "running", "waiting"}

// phase returns an operation's state and since when it has it.
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

func counted(name, help string, number func() int) *sourceCollector {
	d := desc(name, help)
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		show(d, float64(number()))
	}}
}

func certificateGauge(expires func() time.Time) *sourceCollector {
	d := desc("k8splugin_tls_certificate_expiry_timestamp_seconds", "When the certificate that the service presents to its clients expires, in seconds since 1970; absent if it has none.")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		showTime(show, d, expires())
	}}
}

func meshGauges(certificate func() MeshCertificate) *sourceCollector {
	obtained := desc("k8splugin_istio_certificate_obtained_timestamp_seconds", "When the service obtained its certificate from istiod, in seconds since 1970; absent if it has none.")
	expiry := desc("k8splugin_istio_certificate_expiry_timestamp_seconds", "When the service's certificate from istiod expires, in seconds since 1970; absent if it has none.")
	return &sourceCollector{descs: []*prometheus.Desc{obtained, expiry}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		c := certificate()
		showTime(show, obtained, c.Obtained)
		showTime(show, expiry, c.Expires)
	}}
}

func meshCounter(certificate func() MeshCertificate) *sourceCollector {
	d := desc("k8splugin_istio_certificate_failures_total", "Requests to istiod for a certificate that failed.")
	return &sourceCollector{descs: []*prometheus.Desc{d}, counter: true, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		show(d, float64(certificate().Failures))
	}}
}

func sealedGauge(records func() map[string]int) *sourceCollector {
	d := desc("k8splugin_encrypted_records", "Records of the store by the key that encrypts them, as last counted.", "key")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for key, n := range records() {
			show(d, float64(n), key)
		}
	}}
}

// storeGauges returns the gauges of the store's usage.
func storeGauges(space func() StoreSpace) *sourceCollector {
	size := desc("k8splugin_store_size_bytes", "Size of the store's database file; in a cluster, of the largest one.")
	inUse := desc("k8splugin_store_in_use_bytes", "Bytes of the store's database file that are in use; the rest is free for new records.")
	quota := desc("k8splugin_store_quota_bytes", "Size of the store's database file above which it rejects writes; absent if the store does not report it.")
	full := desc("k8splugin_store_full", "1 if the store rejects writes because its quota is used up, else 0.")
	compacted := desc("k8splugin_store_compaction_timestamp_seconds", "When the store's history was last removed, in seconds since 1970; absent until this replica has observed that.")
	return &sourceCollector{
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

// indexGauges returns the gauges of the index of lists with filters.
func indexGauges(status func() map[string]IndexStatus) *sourceCollector {
	records := desc("k8splugin_index_records", "Records in the index of lists with filters, by table of the store.", "table")
	filled := desc("k8splugin_index_filled", "1 if lists with filters use the index of the table, 0 while it is being filled and if the table has too many records for it.", "table")
	return &sourceCollector{descs: []*prometheus.Desc{records, filled}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for table, s := range status() {
			value := 0.0
			if s.Filled {
				value = 1
			}
			show(records, float64(s.Records), table)
			show(filled, value, table)
		}
	}}
}

func targetGauge(targets func() map[nf.BreakerState]int) *sourceCollector {
	d := desc("k8splugin_notification_targets", "Recent targets of this replica's notifications and handed-over kubeconfigs (scheme, host and port) by the state of their circuit breaker.", "state")
	return &sourceCollector{descs: []*prometheus.Desc{d}, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for state, n := range targets() {
			show(d, float64(n), string(state))
		}
	}}
}

func brokenCounter(versions func() map[string]int64) *sourceCollector {
	d := desc("k8splugin_access_reload_failures_total", "New versions of an access control file that could not be used, by content of the file; the previous version stays active.", "file")
	return &sourceCollector{descs: []*prometheus.Desc{d}, counter: true, collect: func(show func(*prometheus.Desc, float64, ...string)) {
		for file, n := range versions() {
			show(d, float64(n), file)
		}
	}}
}

// sourceCollector is a collector that calls its source at every scrape.
type sourceCollector struct {
	descs   []*prometheus.Desc
	counter bool // the values only increase
	collect func(show func(d *prometheus.Desc, value float64, labels ...string))
}

var _ prometheus.Collector = (*sourceCollector)(nil)

// Describe implements prometheus.Collector.
func (a *sourceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range a.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (a *sourceCollector) Collect(ch chan<- prometheus.Metric) {
	kind := prometheus.GaugeValue
	if a.counter {
		kind = prometheus.CounterValue
	}
	a.collect(func(d *prometheus.Desc, value float64, labels ...string) {
		for i := range labels {
			labels[i] = strings.ToValidUTF8(labels[i], "?") // otherwise the whole scrape would fail
		}
		ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	})
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}
