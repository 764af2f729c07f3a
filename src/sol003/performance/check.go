package performance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// checkTarget returns the violations of a target. Vnfs is the field with its VNFs, and
// metrics that with its metrics.
func checkTarget(t nf.PMTarget, vnfs, metrics string) nf.Violations {
	var v nf.Violations
	wrong := func(field, message string) { v = append(v, nf.Violation{Field: field, Message: message}) }
	switch {
	case len(t.VNFs) == 0 || len(t.VNFs) > MaxObjects:
		wrong(vnfs, fmt.Sprintf("must have 1 to %d VNFs", MaxObjects))
	case repeats(t.VNFs):
		wrong(vnfs, "names a VNF twice")
	}
	switch {
	case len(t.VNFCs) > 0 && len(t.VNFs) > 1:
		wrong("subObjectInstanceIds", "must be absent if there is more than one VNF")
	case len(t.VNFCs) > MaxObjects:
		wrong("subObjectInstanceIds", fmt.Sprintf("has more than %d components", MaxObjects))
	case repeats(t.VNFCs):
		wrong("subObjectInstanceIds", "names a component twice")
	}
	for i, name := range t.Metrics {
		field := fmt.Sprintf("%s[%d]", metrics, i)
		if i >= MaxObjects*len(nf.PMMetrics()) {
			wrong(metrics, "has too many metrics")
			break
		}
		metric, object := nf.CutPMMetric(name)
		switch {
		case !slices.Contains(nf.PMMetrics(), metric) && !foreign(metric):
			wrong(field, "is unknown; the metrics are "+list(nf.PMMetrics()))
		case object != "" && !slices.Contains(t.VNFs, object) && !slices.Contains(t.VNFCs, object):
			wrong(field, "names an object that is not measured")
		}
	}
	return v
}

func repeats(all []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all)
}

func list[T ~string](all []T) string {
	var out []string
	for _, one := range all {
		out = append(out, string(one))
	}
	return strings.Join(out, ", ")
}

// foreign reports whether a metric is one of SOL003 that metrics.k8s.io does not have.
func foreign(metric nf.PMMetric) bool {
	for _, prefix := range []string{"VDiskUsage", "ByteIncoming", "ByteOutgoing", "PacketIncoming", "PacketOutgoing"} {
		if strings.HasPrefix(string(metric), prefix) {
			return true
		}
	}
	return false
}

// checkJob returns the violations of what only jobs have.
func (m *Meter) checkJob(job nf.PMJob) nf.Violations {
	var v nf.Violations
	wrong := func(field, message string) {
		v = append(v, nf.Violation{Field: "criteria." + field, Message: message})
	}
	if len(job.Metrics)+len(job.Groups) == 0 {
		wrong("performanceMetric", "is required, or performanceMetricGroup")
	}
	if len(job.Groups) > 1 || len(job.Groups) == 1 && job.Groups[0] != nf.PMGroup {
		wrong("performanceMetricGroup", "must be "+nf.PMGroup)
	}
	if job.Collection < MinPeriod || job.Collection > MaxPeriod {
		wrong("collectionPeriod", fmt.Sprintf("must be %d to %d seconds", int(MinPeriod/time.Second), int(MaxPeriod/time.Second)))
	}
	if job.Reporting < job.Collection || job.Reporting > 7*MaxPeriod {
		wrong("reportingPeriod", fmt.Sprintf("must be at least collectionPeriod, and at most %d seconds", int(7*MaxPeriod/time.Second)))
	}
	if !job.Boundary.IsZero() && !job.Boundary.After(m.now()) {
		wrong("reportingBoundary", "has passed")
	}
	return v
}

// checkThreshold returns the violations of what only thresholds have.
func checkThreshold(t nf.PMThreshold) nf.Violations {
	var v nf.Violations
	wrong := func(field, message string) {
		v = append(v, nf.Violation{Field: "criteria." + field, Message: message})
	}
	if len(t.Metrics) != 1 {
		wrong("performanceMetric", "is required")
	}
	if math.IsNaN(t.Value) || t.Value < 0 {
		wrong("simpleThresholdDetails.thresholdValue", "must be at least 0: it is a percentage")
	}
	if math.IsNaN(t.Hysteresis) || t.Hysteresis < 0 {
		wrong("simpleThresholdDetails.hysteresis", "must be at least 0")
	}
	return v
}

// measurable returns the reason why a target cannot be measured.
func (m *Meter) measurable(ctx context.Context, t nf.PMTarget) error {
	none := func(why string) error { return nf.E(nf.Unsupported, "measure", "the VNFs", errors.New(why)) }
	if t.Object != nf.PMVNF && t.Object != nf.PMVNFC {
		return none("objectType " + nf.Clip(string(t.Object), 40) + " is not measured: metrics.k8s.io has usage of pods only; use Vnf or Vnfc")
	}
	for _, name := range t.Metrics {
		if metric, _ := nf.CutPMMetric(name); foreign(metric) {
			return none("metrics.k8s.io has no " + nf.Clip(string(metric), 40) + "; the metrics are " + list(nf.PMMetrics()))
		}
	}
	for _, id := range t.VNFs {
		if err := m.present(ctx, t, id); err != nil {
			return err
		}
	}
	for id, got := range m.usages(ctx, t.VNFs) {
		if got.err != nil {
			return got.err
		}
		if len(got.pods) > 0 && !slices.ContainsFunc(got.pods, func(p nf.PodUsage) bool { return p.CPU.Allotted+p.Memory.Allotted > 0 }) {
			return none("the pods of VNF " + id + " have neither limits nor requests, of which the usage would be a percentage")
		}
	}
	return nil
}

// present returns an error unless a VNF of the target's project is instantiated, and has
// the target's components.
func (m *Meter) present(ctx context.Context, t nf.PMTarget, id string) error {
	v, err := m.cfg.Source.VNF(ctx, id)
	if nf.KindOf(err) == nf.NotFound || err == nil && nf.ProjectOf(v.Project) != nf.ProjectOf(t.Project) {
		return nf.E(nf.NotFound, "measure", "VNF "+id, nil) // alike for VNFs of other projects
	}
	if err != nil {
		return err
	}
	if v.Instantiated == nil {
		return nf.E(nf.Conflict, "measure", "VNF "+id, errors.New("it is not instantiated"))
	}
	for i, vnfc := range t.VNFCs {
		if !slices.ContainsFunc(v.Instantiated.VNFCs, func(c nf.VNFC) bool { return c.ID() == vnfc }) {
			return nf.E(nf.Invalid, "measure", "VNF "+id, nf.Violations{{
				Field: fmt.Sprintf("subObjectInstanceIds[%d]", i), Message: "is not a component of the VNF",
			}})
		}
	}
	return nil
}
