package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// needs are the parsed needs of a placement.
type needs struct {
	*nf.Placement

	selector   labels.Selector
	total, pod nf.Amounts
	pods       int
	flavors    []string // of the compute profiles that the request gives workloads
	flavorOf   FlavorLabels
}

// flavorsOf returns the flavors that a request names in compute_profiles. Those of
// profiles that the package declares are not known yet, and those of OOF's directives are
// without effect unless the package has their workload.
func flavorsOf(in nf.Inputs) (out []string) {
	asked, _ := render.AskedCompute(in) // its faults are reported when the package is rendered
	for _, c := range asked {
		name := c.Profile.Flavor
		if strings.HasPrefix(c.Name, nf.FlavorPrefix) {
			name = c.Name
		}
		if name != "" && !c.Optional && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// needsOf parses the needs of a placement. It returns a violation for each that is
// wrong.
func needsOf(p *nf.Placement) (needs, nf.Violations) {
	out := needs{Placement: p, pods: p.Room.Pods}
	selector, err := labels.Parse(p.Selector)
	var v nf.Violations
	if err != nil {
		v = append(v, nf.Violation{Field: "placement.selector", Message: "is not a label selector: " + err.Error()})
	}
	out.selector = selector
	var wrong nf.Violations
	out.total, wrong = amountsOf("placement.room.total", p.Room.Total)
	v = append(v, wrong...)
	out.pod, wrong = amountsOf("placement.room.pod", p.Room.Pod)
	v = append(v, wrong...)
	if len(out.pod) > 0 {
		out.pod["pods"], out.pods = 1, max(out.pods, 1)
	}
	return out, v
}

// amountsOf parses quantities.
func amountsOf(field string, quantities map[string]string) (nf.Amounts, nf.Violations) {
	out, v := nf.Amounts{}, nf.Violations(nil)
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		q, err := resource.ParseQuantity(quantities[name])
		switch {
		case err != nil:
			v = append(v, nf.Violation{Field: field + "." + name, Message: fmt.Sprintf("%q is not a quantity, such as 500m or 2Gi", quantities[name])})
		case q.Sign() <= 0:
			v = append(v, nf.Violation{Field: field + "." + name, Message: "must be positive"})
		case name == nf.CPUResource:
			out[name] = q.MilliValue()
		default:
			out[name] = q.Value()
		}
	}
	return out, v
}

// live reports whether a region must be read to know whether it fits.
func (n needs) live() bool {
	return len(n.Features)+len(n.total)+len(n.pod)+len(n.APIs)+len(n.Networks)+len(n.flavors) > 0
}

// lacking returns why a region does not fit; no reason if it fits.
func (n needs) lacking(offers nf.RegionCapabilities) (nf.PlacementReason, string) {
	for _, api := range n.APIs {
		if !offers.Serves(api) {
			return nf.PlacementAPI, "does not serve " + api
		}
	}
	for _, name := range n.Networks {
		if !slices.ContainsFunc(offers.Networks, func(f nf.NetworkFlavor) bool { return f.Name == name }) {
			return nf.PlacementFlavor, "has no networks of " + name
		}
	}
	if len(n.Features)+len(n.total)+len(n.pod)+len(n.flavors) == 0 {
		return "", ""
	}
	for _, m := range offers.Missing {
		if m.Group == "" && (m.Resource == "nodes" || m.Resource == "pods" && len(n.total)+len(n.pod) > 0) {
			return nf.PlacementUnknown, "its account needs the rule " + m.String()
		}
	}
	for _, name := range n.flavors {
		if _, found, _ := n.flavorOf(offers, name); !found {
			return nf.PlacementFeature, "has no flavor " + nf.Clip(name, 64)
		}
	}
	return n.lackingNodes(n.nodes(offers))
}

// nodes returns the usable nodes that have the features.
func (n needs) nodes(offers nf.RegionCapabilities) []nf.NodeRoom {
	var out []nf.NodeRoom
	for _, node := range offers.Rooms {
		if n.featured(node) {
			out = append(out, node)
		}
	}
	return out
}

func (n needs) featured(node nf.NodeRoom) bool {
	for name, want := range n.Features {
		value, has := node.Features[strings.TrimPrefix(name, nf.FeaturePrefix)]
		if !has || want != nf.AnyValue && value != want {
			return false
		}
	}
	return true
}

// lackingNodes compares nodes with the room that is needed.
func (n needs) lackingNodes(nodes []nf.NodeRoom) (nf.PlacementReason, string) {
	if len(nodes) == 0 && len(n.Features) > 0 {
		return nf.PlacementFeature, "no usable node has the features " + strings.Join(slices.Sorted(maps.Keys(n.Features)), ", ")
	}
	sum := sumOf(nodes)
	if name := sum.Lacking(n.total); name != "" {
		return nf.PlacementRoom, fmt.Sprintf("%s of %s are free, %s are needed", nf.FormatAmount(name, sum[name]), name, nf.FormatAmount(name, n.total[name]))
	}
	if fit := n.fitting(nodes); fit < n.pods {
		return nf.PlacementRoom, fmt.Sprintf("%d of %d pods fit", fit, n.pods)
	}
	return "", ""
}

func sumOf(nodes []nf.NodeRoom) nf.Amounts {
	sum := nf.Amounts{}
	for _, node := range nodes {
		sum.Add(node.Free)
	}
	return sum
}

// fitting returns how many of the pods fit on the nodes at once.
func (n needs) fitting(nodes []nf.NodeRoom) int {
	fit := 0
	for _, node := range nodes {
		free := maps.Clone(node.Free)
		for fit < n.pods && free.Lacking(n.pod) == "" {
			free.Sub(n.pod)
			fit++
		}
	}
	return fit
}

// share returns the free share of the resource that is needed and scarcest.
func (n needs) share(offers nf.RegionCapabilities) float64 {
	least := 1.0
	for _, r := range offers.Resources {
		if n.total[r.Name]+n.pod[r.Name] > 0 && r.Name != "pods" && r.Allocatable > 0 {
			least = min(least, float64(r.Free)/float64(r.Allocatable))
		}
	}
	return least
}
