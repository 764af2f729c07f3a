package cluster

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// metricsKind is the kind of the measurements of the metrics server. Its group is served
// by another server than the API server, and may come and go, so it is not discovered.
var metricsKind = kind{schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}, "pods", true, nil, nil}

// podMetrics is a PodMetrics, as far as the usage depends on it.
type podMetrics struct {
	Meta       metav1.ObjectMeta `json:"metadata"`
	Containers []struct {
		Usage corev1.ResourceList `json:"usage"`
	} `json:"containers"`
}

// Gauge reads how much of their resources pods use, from the metrics server of a region.
type Gauge struct{ cluster *Cluster }

// NewGauge returns the gauge of a region.
func NewGauge(c *Cluster) Gauge { return Gauge{c} }

// Usage returns how much of their resources the pods of the present revision of each of
// the owner's refs use. A pod that has not been measured yet is omitted, and so are virtual
// machines. Usage returns nf.Unsupported if the region has no metrics server, and
// nf.Unreachable if it does not respond.
func (g Gauge) Usage(ctx context.Context, owner nf.Subject, refs []nf.Ref) ([]nf.PodUsage, error) {
	look, err := newSnapshot(ctx, g.cluster.client, owner, refs)
	if err != nil {
		return nil, err
	}
	defer look.set.release()
	if err := look.set.readOnce(ctx, look.unread); err != nil {
		return nil, err
	}
	look.set.explain(ctx, eventKind) // reads the pods
	pods, namespaces := look.set.view.allotments(refs)
	var out []nf.PodUsage
	for _, namespace := range namespaces {
		scope, mine := metricsKind.in(namespace), query{labels: ownedBy(owner)}
		_, err := g.cluster.client.pages(ctx, scope, mine, pageOf(func(m podMetrics) {
			if usage, known := pods[namespace+"/"+m.Meta.Name]; known {
				out = append(out, m.usage(usage))
			}
		}), func() { out = nil })
		if apierrors.IsNotFound(err) {
			return nil, nf.E(nf.Unsupported, "read", "the usage of pods", errors.New("the cloud region does not serve metrics.k8s.io; install a metrics server there"))
		}
		if err != nil {
			return nil, g.cluster.client.region.fail(ctx, "read", "the usage of pods", err)
		}
	}
	return out, nil
}

// usage adds what a pod uses to what it is allotted.
func (m podMetrics) usage(of nf.PodUsage) nf.PodUsage {
	for _, c := range m.Containers {
		of.CPU.Used += c.Usage.Cpu().AsApproximateFloat64()
		of.Memory.Used += c.Usage.Memory().AsApproximateFloat64()
	}
	return of
}

// allotments returns the pods below the refs by "namespace/name", with what they are
// allotted, and their namespaces.
func (v *view) allotments(refs []nf.Ref) (pods map[string]nf.PodUsage, namespaces []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	pods = map[string]nf.PodUsage{}
	seen := map[string]bool{}
	for _, ref := range refs {
		for p := range v.podsOf(v.objects[ref.Key()]) {
			if !isOf(p, podKind) {
				continue
			}
			usage := nf.PodUsage{Pod: p.GetName()}
			usage.CPU.Allotted, usage.Memory.Allotted = allotted(p, "cpu"), allotted(p, "memory")
			pods[p.GetNamespace()+"/"+p.GetName()] = usage
			if !seen[p.GetNamespace()] {
				seen[p.GetNamespace()], namespaces = true, append(namespaces, p.GetNamespace())
			}
		}
	}
	return pods, namespaces
}

// allotted returns how much of a resource the containers of a pod may use; 0 if that is
// unknown for one of them.
func allotted(p *unstructured.Unstructured, name string) (sum float64) {
	for _, list := range []string{"containers", "initContainers"} {
		for c := range members(p.Object, "spec", list) {
			if list == "initContainers" && text(c, "restartPolicy") != "Always" {
				continue // it has ended
			}
			given := text(c, "resources", "limits", name)
			if given == "" {
				given = text(c, "resources", "requests", name)
			}
			amount, err := resource.ParseQuantity(given)
			if err != nil || amount.IsZero() {
				return 0
			}
			sum += amount.AsApproximateFloat64()
		}
	}
	return sum
}
