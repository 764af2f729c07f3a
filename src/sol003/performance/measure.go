package performance

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// usage is a VNF with the usage of its pods.
type usage struct {
	vnf  nf.VNF
	pods []nf.PodUsage
	err  error // of reading the usage
}

// usages reads the usage of VNFs, by their ids. VNFs that do not exist, or are not
// instantiated, are left out.
func (m *Meter) usages(ctx context.Context, ids []string) map[string]usage {
	out := map[string]usage{}
	var mu sync.Mutex
	var running errgroup.Group
	running.SetLimit(parallel)
	for _, id := range ids {
		running.Go(func() error {
			got := m.usage(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if got.err != nil || got.vnf.Instantiated != nil {
				out[id] = got
			}
			return nil
		})
	}
	_ = running.Wait() // errors are in the map
	return out
}

func (m *Meter) usage(ctx context.Context, id string) (out usage) {
	ctx, cancel := context.WithTimeout(ctx, usageTime)
	defer cancel()
	out.vnf, out.err = m.cfg.Source.VNF(ctx, id)
	if nf.KindOf(out.err) == nf.NotFound {
		return usage{}
	}
	if out.err == nil && out.vnf.Instantiated != nil {
		out.pods, out.err = m.cfg.Source.Usage(ctx, id)
	}
	return out
}

// entries returns the values of a VNF that a target asks for. All says that it asks for
// all metrics.
func entries(t nf.PMTarget, all bool, got usage) []nf.PMEntry {
	var out []nf.PMEntry
	if t.Object == nf.PMVNF && len(t.VNFCs) == 0 {
		return values(t, all, nf.PMEntry{Object: t.Object, VNF: got.vnf.ID}, got.pods)
	}
	for _, c := range got.vnf.Instantiated.VNFCs {
		if len(t.VNFCs) > 0 && !slices.Contains(t.VNFCs, c.ID()) {
			continue
		}
		i := slices.IndexFunc(got.pods, func(p nf.PodUsage) bool { return p.Pod == c.Resource })
		if i >= 0 {
			out = append(out, values(t, all, nf.PMEntry{Object: t.Object, VNF: got.vnf.ID, VNFC: c.ID()}, got.pods[i:i+1])...)
		}
	}
	return out
}

// values returns an entry for each metric of an object that consists of pods.
func values(t nf.PMTarget, all bool, of nf.PMEntry, pods []nf.PodUsage) []nf.PMEntry {
	cpu := func(p nf.PodUsage) nf.ResourceUsage { return p.CPU }
	memory := func(p nf.PodUsage) nf.ResourceUsage { return p.Memory }
	var out []nf.PMEntry
	for _, metric := range nf.PMMetrics() {
		if !all && !asked(t.Metrics, metric, of) {
			continue
		}
		resource := cpu
		if metric == nf.PMMemoryMean || metric == nf.PMMemoryPeak {
			resource = memory
		}
		mean, peak, known := percentages(pods, resource)
		if !known {
			continue
		}
		entry := of
		entry.Metric, entry.Value = metric, mean
		if metric.Peak() {
			entry.Value = peak
		}
		out = append(out, entry)
	}
	return out
}

// asked reports whether one of the names is that of the metric, of this object or of any.
func asked(names []string, metric nf.PMMetric, of nf.PMEntry) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		one, object := nf.CutPMMetric(name)
		return one == metric && (object == "" || object == of.VNF || object == of.VNFC)
	})
}

// percentages returns how much pods use of what they are allotted: all together, and the
// one that uses the most. Pods that are allotted nothing are left out; known is false if
// there are no others.
func percentages(pods []nf.PodUsage, resource func(nf.PodUsage) nf.ResourceUsage) (mean, peak float64, known bool) {
	var used, allotted float64
	for _, p := range pods {
		if r := resource(p); r.Allotted > 0 {
			used, allotted = used+r.Used, allotted+r.Allotted
			peak = max(peak, 100*r.Used/r.Allotted)
		}
	}
	if allotted == 0 {
		return 0, 0, false
	}
	return 100 * used / allotted, peak, true
}
