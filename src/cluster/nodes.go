package cluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// node is a Node, as far as its capabilities depend on it.
type node struct {
	Meta metav1.ObjectMeta `json:"metadata"`
	Spec struct {
		Unschedulable bool           `json:"unschedulable"`
		Taints        []corev1.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Allocatable corev1.ResourceList    `json:"allocatable"`
		Conditions  []corev1.NodeCondition `json:"conditions"`
		NodeInfo    corev1.NodeSystemInfo  `json:"nodeInfo"`
	} `json:"status"`
}

func (n *node) ready() bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (n *node) tainted() bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
}

// requests are the resources that a container or a pod requests.
type requests struct {
	Requests corev1.ResourceList `json:"requests"`
}

// container is a container of a pod.
type container struct {
	RestartPolicy corev1.ContainerRestartPolicy `json:"restartPolicy"`
	Resources     requests                      `json:"resources"`
}

// podRow is a Pod, as far as the free resources of its node depend on it.
type podRow struct {
	Spec struct {
		NodeName       string              `json:"nodeName"`
		Containers     []container         `json:"containers"`
		InitContainers []container         `json:"initContainers"`
		Overhead       corev1.ResourceList `json:"overhead"`
		Resources      requests            `json:"resources"` // of the pod as a whole
	} `json:"spec"`
}

// amounts returns the amounts of a resource list.
func amounts(list corev1.ResourceList) nf.Amounts {
	out := nf.Amounts{}
	for name, q := range list {
		if name == corev1.ResourceCPU {
			out[string(name)] = q.MilliValue()
		} else {
			out[string(name)] = q.Value()
		}
	}
	return out
}

// request returns the resources that the scheduler reserves for the pod: those of its
// containers and its sidecars, or those of its largest init step, and its overhead.
func (p *podRow) request() nf.Amounts {
	sum, sidecars, largest := nf.Amounts{"pods": 1}, nf.Amounts{}, nf.Amounts{}
	for _, c := range p.Spec.Containers {
		sum.Add(amounts(c.Resources.Requests))
	}
	for _, c := range p.Spec.InitContainers {
		one := amounts(c.Resources.Requests)
		step := maps.Clone(sidecars)
		step.Add(one)
		if c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars.Add(one)
			sum.Add(one)
		}
		raise(largest, step)
	}
	raise(sum, largest)
	maps.Copy(sum, amounts(p.Spec.Resources.Requests))
	sum.Add(amounts(p.Spec.Overhead))
	return sum
}

// raise raises amounts to at least other ones.
func raise(a, least nf.Amounts) {
	for name, n := range least {
		a[name] = max(a[name], n)
	}
}

// nodeCensus counts the nodes of a region.
type nodeCensus struct {
	summary  nf.NodeSummary
	usable   map[string]nf.NodeRoom       // by name; Free is what is allocatable
	features map[string]map[string]int    // nodes by the name and the value of a feature
	sets     map[string]map[string]string // features, by their text: nodes usually share them
}

func newNodeCensus() nodeCensus {
	return nodeCensus{
		summary: nf.NodeSummary{
			Architectures: map[string]int{}, OperatingSystems: map[string]int{}, Images: map[string]int{},
			Kernels: map[string]int{}, Kubelets: map[string]int{}, ContainerRuntimes: map[string]int{},
		},
		usable: map[string]nf.NodeRoom{}, features: map[string]map[string]int{}, sets: map[string]map[string]string{},
	}
}

// add adds a node.
func (s *nodeCensus) add(n node) {
	s.summary.Total++
	info := n.Status.NodeInfo
	for _, c := range []struct {
		counts map[string]int
		value  string
	}{
		{s.summary.Architectures, info.Architecture}, {s.summary.OperatingSystems, info.OperatingSystem}, {s.summary.Images, info.OSImage},
		{s.summary.Kernels, info.KernelVersion}, {s.summary.Kubelets, info.KubeletVersion}, {s.summary.ContainerRuntimes, info.ContainerRuntimeVersion},
	} {
		count(c.counts, c.value)
	}
	features := s.featuresOf(n)
	for name, value := range features {
		if s.features[name] == nil {
			s.features[name] = map[string]int{}
		}
		s.features[name][value]++
	}
	switch {
	case !n.ready():
		s.summary.NotReady++
	case n.Spec.Unschedulable:
		s.summary.Cordoned++
	case n.tainted():
		s.summary.Tainted++
	default:
		s.summary.Usable++
		s.usable[n.Meta.Name] = nf.NodeRoom{Name: n.Meta.Name, Zone: n.Meta.Labels["topology.kubernetes.io/zone"], Features: features, Free: amounts(n.Status.Allocatable)}
	}
}

// count counts a value. Values beyond the limit are counted together.
func count(counts map[string]int, value string) {
	if _, known := counts[value]; !known && len(counts) >= mostDistinct {
		value = "other"
	}
	counts[value]++
}

// featuresOf returns the features of a node. Nodes with equal features share the map.
func (s *nodeCensus) featuresOf(n node) map[string]string {
	features, text := map[string]string{}, strings.Builder{}
	for _, label := range slices.Sorted(maps.Keys(n.Meta.Labels)) {
		if name, is := strings.CutPrefix(label, nf.FeaturePrefix); is {
			features[name] = n.Meta.Labels[label]
			text.WriteString(name + "=" + n.Meta.Labels[label] + "\n")
		}
	}
	if known := s.sets[text.String()]; known != nil {
		return known
	}
	s.sets[text.String()] = features
	return features
}

// podCensus sums what the pods request that have not ended.
type podCensus struct {
	used    map[string]nf.Amounts // by the name of the node
	pending nf.Amounts            // by pods that have no node
}

func newPodCensus() podCensus { return podCensus{map[string]nf.Amounts{}, nf.Amounts{}} }

// add adds a pod.
func (s *podCensus) add(p podRow) {
	on := p.Spec.NodeName
	if on == "" {
		s.pending.Add(p.request())
		return
	}
	if s.used[on] == nil {
		s.used[on] = nf.Amounts{}
	}
	s.used[on].Add(p.request())
}

// devices returns the devices of device plugins on each usable node: the extended
// resources that it has, and what the pods there do not request. It must be called before
// fill.
func (s *nodeCensus) devices(pods podCensus) []nf.NodeDevices {
	var out []nf.NodeDevices
	for name, room := range s.usable {
		for resource, n := range room.Free {
			if domain, _, extended := strings.Cut(resource, "/"); extended && domain != "kubernetes.io" && n > 0 {
				out = append(out, nf.NodeDevices{Node: name, Resource: resource, Total: int(n), Free: int(n - pods.used[name][resource])})
			}
		}
	}
	return out
}

// fill adds what was counted to capabilities.
func (s *nodeCensus) fill(out *nf.RegionCapabilities, pods podCensus) {
	out.Nodes = s.summary
	var features []nf.NodeFeature
	for _, name := range slices.Sorted(maps.Keys(s.features)) {
		for _, value := range slices.Sorted(maps.Keys(s.features[name])) {
			features = append(features, nf.NodeFeature{Name: name, Value: value, Nodes: s.features[name][value]})
		}
	}
	out.Features = bounded(out, "features", features)
	sums := map[string]nf.NodeResource{}
	for _, name := range slices.Sorted(maps.Keys(s.usable)) {
		room := s.usable[name]
		room.Total = maps.Clone(room.Free)
		room.Free.Sub(pods.used[name])
		for resource, n := range room.Free {
			sum := sums[resource]
			sum.Name, sum.Pending = resource, pods.pending[resource]
			sum.Nodes++
			sum.Allocatable += room.Total[resource]
			sum.Free += n
			sum.Largest = max(sum.Largest, n)
			sums[resource] = sum
		}
		out.Rooms = append(out.Rooms, room)
	}
	var resources []nf.NodeResource
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		resources = append(resources, sums[name])
	}
	out.Resources = bounded(out, "resources", resources)
}
