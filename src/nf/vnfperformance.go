package nf

import (
	"strings"
	"time"
)

// PMObject is a type of measured objects of SOL003.
type PMObject string

// The types of objects that can be measured.
const (
	PMVNF  PMObject = "Vnf"
	PMVNFC PMObject = "Vnfc"
)

// PMMetric is a performance metric of SOL003: a percentage of what a VNF or a component is
// allotted. In requests and reports, a "." and the id of the measured object follow.
type PMMetric string

// The metrics that are measured.
const (
	PMCPUMean    PMMetric = "VCpuUsageMeanVnf"
	PMCPUPeak    PMMetric = "VCpuUsagePeakVnf"
	PMMemoryMean PMMetric = "VMemoryUsageMeanVnf"
	PMMemoryPeak PMMetric = "VMemoryUsagePeakVnf"
)

// PMMetrics lists the metrics that are measured.
func PMMetrics() []PMMetric { return []PMMetric{PMCPUMean, PMCPUPeak, PMMemoryMean, PMMemoryPeak} }

// Peak reports whether the metric is the highest value, and not the mean.
func (m PMMetric) Peak() bool { return m == PMCPUPeak || m == PMMemoryPeak }

// PMGroup is the group of all metrics that are measured.
const PMGroup = "VirtualisedComputeResource"

// CutPMMetric returns the metric and the id of the object that a name consists of. The
// object is empty if the name is that of a metric alone.
func CutPMMetric(name string) (metric PMMetric, object string) {
	before, object, _ := strings.Cut(name, ".")
	return PMMetric(before), object
}

// PMTarget is what PM jobs and thresholds have in common: what is measured, and who is
// notified.
type PMTarget struct {
	ID       string    `json:"id"` // a UUID
	Project  string    `json:"project,omitempty"`
	Object   PMObject  `json:"object"`
	VNFs     []string  `json:"vnfs"`            // ids
	VNFCs    []string  `json:"vnfcs,omitempty"` // ids of components of the only VNF; none: see Object
	Metrics  []string  `json:"metrics,omitempty"`
	Callback string    `json:"callback"`
	Created  time.Time `json:"created"`
}

// PMModification changes the callback of a PM job or a threshold.
type PMModification struct {
	Callback string        // empty: it stays
	Auth     *CallbackAuth // nil: it stays
}

// PMJob is a PM job of SOL003. It measures VNFs, and reports the measurements.
type PMJob struct {
	PMTarget

	Groups     []string      `json:"groups,omitempty"`
	Collection time.Duration `json:"collection"`        // between measurements
	Reporting  time.Duration `json:"reporting"`         // that a report covers
	Boundary   time.Time     `json:"boundary,omitzero"` // end of the job; zero: none
	Reports    []PMReportRef `json:"reports,omitempty"` // those that are kept, the oldest first
}

// PMReportRef is a report of a job.
type PMReportRef struct {
	ID    string    `json:"id"` // a UUID
	Ready time.Time `json:"ready"`
}

// PMReport is a report of a PM job of SOL003.
type PMReport struct {
	PMReportRef

	Job     string    `json:"job"`
	Entries []PMEntry `json:"entries"`
}

// PMEntry is the value of a metric of an object in a period.
type PMEntry struct {
	Object PMObject  `json:"object"`
	VNF    string    `json:"vnf"`
	VNFC   string    `json:"vnfc,omitempty"`
	Metric PMMetric  `json:"metric"`
	Time   time.Time `json:"time"` // of the last measurement
	Value  float64   `json:"value"`
}

// Name returns the name of the metric with the id of its object.
func (e PMEntry) Name() string {
	if e.VNFC != "" {
		return string(e.Metric) + "." + e.VNFC
	}
	return string(e.Metric) + "." + e.VNF
}

// PMThreshold is a threshold of SOL003, of type SIMPLE. It has one VNF and one metric.
type PMThreshold struct {
	PMTarget

	Value      float64         `json:"value"`
	Hysteresis float64         `json:"hysteresis,omitempty"`
	Above      map[string]bool `json:"above,omitempty"` // objects, by id, whose last crossing was upward
}

// PMNotice says that a report is available, or that a threshold was crossed.
type PMNotice struct {
	Target PMTarget `json:"target"`           // the job or the threshold
	Report string   `json:"report,omitempty"` // id; empty: a threshold was crossed
	Entry  PMEntry  `json:"entry,omitzero"`   // that has crossed the threshold
	Up     bool     `json:"up,omitempty"`     // the direction of the crossing
}
