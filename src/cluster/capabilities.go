package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	capabilityTime   = 30 * time.Second // for which capabilities need not be read again
	mostCapabilities = 128              // regions of a pool whose capabilities are remembered
	mostListed       = 500              // entries of a list of capabilities
	mostGroupKinds   = 200              // of one API group
	mostDistinct     = 20               // values that a summary of nodes counts separately
)

// surveys are the capabilities of regions that were read recently.
type surveys = lru.Cache[*breakerTransport, nf.RegionCapabilities]

func newSurveys() *surveys {
	known, _ := lru.New[*breakerTransport, nf.RegionCapabilities](mostCapabilities) // fails only for a size below 1
	return known
}

// survey reads the capabilities of one region, one reading at a time.
type survey struct {
	known *surveys
	turn  *semaphore.Weighted
}

// RegionCapabilities returns what the region offers, as the service may read it. An
// answer of the last 30 s is returned again, unless a fresh one is requested. What
// the region's account may not list is in Missing. Requests at the same time share
// one answer.
func (c *Cluster) RegionCapabilities(ctx context.Context, fresh bool) (nf.RegionCapabilities, error) {
	clock, s := c.transport.cfg.Clock, c.survey
	oldest := clock()
	if !fresh {
		oldest = oldest.Add(-capabilityTime)
	}
	recent := func() (nf.RegionCapabilities, bool) {
		known, found := s.known.Get(c.transport)
		return known, found && known.Read.After(oldest)
	}
	if known, ok := recent(); ok {
		return known, nil
	}
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return nf.RegionCapabilities{}, c.service.region.fail(ctx, "read the capabilities of", c.service.region.String(), err)
	}
	defer s.turn.Release(1)
	if known, ok := recent(); ok {
		return known, nil // read while this request waited
	}
	read, err := readCapabilities(ctx, c)
	if err == nil {
		s.known.Add(c.transport, read)
	}
	return read, err
}

// readCapabilities reads the parts of the capabilities in parallel.
func readCapabilities(ctx context.Context, c *Cluster) (nf.RegionCapabilities, error) {
	ks, err := c.service.apis.discover(ctx) // cached kinds may be of any age
	if err != nil {
		return nf.RegionCapabilities{}, err
	}
	apis, err := c.Capabilities(ctx)
	if err != nil {
		return nf.RegionCapabilities{}, err
	}
	out := nf.RegionCapabilities{Version: apis.Version, APIs: apis.APIs, Read: c.transport.cfg.Clock().UTC()}
	seen := newInspection()
	lists := seen.lists()
	missing := make([]*nf.MissingRule, len(lists))
	err = each(c.service.parallel, len(lists), func(i int) (err error) {
		missing[i], err = c.service.readList(ctx, ks, lists[i])
		return err
	})
	if err != nil {
		return nf.RegionCapabilities{}, err
	}
	for _, m := range missing {
		if m != nil {
			out.Missing = append(out.Missing, *m)
		}
	}
	out.Groups = bounded(&out, "groups", servedGroups(ks))
	out.Networks = flavors(ks, seen.drivers)
	seen.fill(&out)
	return out, nil
}

// inspection is what the lists of a region show.
type inspection struct {
	nodes   nodeCensus
	pods    podCensus
	slices  sliceCensus
	claimed map[device]bool
	classes []nf.StorageClass
	drivers map[string]bool // names of the DeviceClasses
}

func newInspection() *inspection {
	return &inspection{nodes: newNodeCensus(), pods: newPodCensus(), slices: sliceCensus{}, claimed: map[device]bool{}, drivers: map[string]bool{}}
}

// lists returns the lists to read. Each fills another part of the inspection, so they
// may be read concurrently.
func (s *inspection) lists() []capabilityList {
	return []capabilityList{
		{"", "Node", query{}, pageOf(func(n node) { s.nodes.add(n) }), func() { s.nodes = newNodeCensus() }},
		{"", "Pod", query{fields: "status.phase!=Succeeded,status.phase!=Failed"}, pageOf(func(p podRow) { s.pods.add(p) }), func() { s.pods = newPodCensus() }},
		{"storage.k8s.io", "StorageClass", query{}, pageOf(func(c storageClass) { s.classes = append(s.classes, c.shown()) }), func() { s.classes = nil }},
		{"resource.k8s.io", "ResourceSlice", query{}, pageOf(func(r resourceSlice) { s.slices.add(r) }), func() { clear(s.slices) }},
		{"resource.k8s.io", "ResourceClaim", query{}, pageOf(func(c resourceClaim) { c.claims(s.claimed) }), func() { clear(s.claimed) }},
		{"resource.k8s.io", "DeviceClass", query{accept: acceptMetaList}, pageOf(func(d metav1.PartialObjectMetadata) { s.drivers[d.Name] = true }), func() { clear(s.drivers) }},
	}
}

// fill adds what the lists show to capabilities.
func (s *inspection) fill(out *nf.RegionCapabilities) {
	perNode := append(s.nodes.devices(s.pods), s.slices.nodes(s.claimed)...)
	s.nodes.fill(out, s.pods)
	slices.SortFunc(s.classes, func(a, b nf.StorageClass) int { return strings.Compare(a.Name, b.Name) })
	out.StorageClasses = bounded(out, "storage_classes", s.classes)
	out.Devices = bounded(out, "devices", s.slices.counts(s.claimed))
	slices.SortFunc(perNode, func(a, b nf.NodeDevices) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Driver, b.Driver))
	})
	out.NodeDevices = bounded(out, "node_devices", perNode)
}

// capabilityList is a list of all objects of a kind.
type capabilityList struct {
	group, kind string
	query       query
	read        func(body []byte) (metav1.ListMeta, error)
	restart     func() // drops what was read
}

// readList reads a list, or returns the rule that the region's account needs for it.
// A kind that the region does not serve has no objects.
func (c *client) readList(ctx context.Context, ks *kinds, l capabilityList) (*nf.MissingRule, error) {
	served := ks.by[schema.GroupKind{Group: l.group, Kind: l.kind}]
	if len(served) == 0 {
		return nil, nil
	}
	_, err := c.pages(ctx, served[0].in(""), l.query, l.read, l.restart)
	if apierrors.IsForbidden(err) {
		l.restart()
		return &nf.MissingRule{Group: l.group, Resource: served[0].resource, Verb: "list"}, nil
	}
	return nil, c.region.fail(ctx, "list", l.kind+" objects", err)
}

// pageOf returns a function that reads the objects of a page.
func pageOf[T any](add func(T)) func(body []byte) (metav1.ListMeta, error) {
	return func(body []byte) (metav1.ListMeta, error) {
		var page struct {
			Meta  metav1.ListMeta `json:"metadata"`
			Items []T             `json:"items"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return page.Meta, err
		}
		for _, item := range page.Items {
			add(item)
		}
		return page.Meta, nil
	}
}

// bounded returns the first entries of a list, and records whether others are omitted.
func bounded[T any](out *nf.RegionCapabilities, name string, all []T) []T {
	if len(all) <= mostListed {
		return all
	}
	out.Omitted = append(out.Omitted, name)
	return all[:mostListed:mostListed]
}

// storageClass is a StorageClass, as far as it is shown.
type storageClass struct {
	Meta          metav1.ObjectMeta `json:"metadata"`
	Provisioner   string            `json:"provisioner"`
	Expansion     bool              `json:"allowVolumeExpansion"`
	BindingMode   string            `json:"volumeBindingMode"`
	ReclaimPolicy string            `json:"reclaimPolicy"`
}

func (s storageClass) shown() nf.StorageClass {
	return nf.StorageClass{
		Name: s.Meta.Name, Provisioner: s.Provisioner, Default: s.Meta.Annotations["storageclass.kubernetes.io/is-default-class"] == "true",
		Expansion: s.Expansion, BindingMode: s.BindingMode, ReclaimPolicy: s.ReclaimPolicy,
	}
}

// software names the software that serves some API groups.
var software = map[string]string{
	"kubevirt.io": "KubeVirt", "cdi.kubevirt.io": "Containerized Data Importer", "cluster.x-k8s.io": "Cluster API",
	"snapshot.storage.k8s.io": "volume snapshots", "resource.k8s.io": "Dynamic Resource Allocation", "nfd.k8s-sigs.io": "Node Feature Discovery",
	"topology.node.k8s.io": "NUMA topology of nodes", "metrics.k8s.io": "metrics server", "cert-manager.io": "cert-manager",
	"monitoring.coreos.com": "Prometheus operator", "networking.istio.io": "Istio", "gateway.networking.k8s.io": "Gateway API",
}

// servedGroups returns the API groups with their versions, the preferred one first, and
// their kinds.
func servedGroups(ks *kinds) []nf.ServedGroup {
	versions, names := map[string][]string{}, map[string][]string{}
	for gk, all := range ks.by {
		names[gk.Group] = append(names[gk.Group], gk.Kind)
		for _, k := range all {
			if !slices.Contains(versions[gk.Group], k.Version) {
				versions[gk.Group] = append(versions[gk.Group], k.Version)
			}
		}
	}
	var out []nf.ServedGroup
	for _, group := range slices.Sorted(maps.Keys(names)) {
		g := nf.ServedGroup{Group: group, Software: software[group], Versions: versions[group], Kinds: names[group]}
		slices.Sort(g.Versions)
		slices.Sort(g.Kinds)
		g.Kinds = g.Kinds[:min(len(g.Kinds), mostGroupKinds)]
		out = append(out, g)
	}
	return out
}

// sriovDriver is the driver of Dynamic Resource Allocation for virtual functions.
const sriovDriver = "sriovnetwork.k8snetworkplumbingwg.io"

// flavors returns the kinds of networks that the API of a region shows. Classes are the
// names of its DeviceClasses.
func flavors(ks *kinds, classes map[string]bool) []nf.NetworkFlavor {
	has := func(group, kind string) bool { return len(ks.by[schema.GroupKind{Group: group, Kind: kind}]) > 0 }
	segments := has("k8s.ovn.org", "UserDefinedNetwork")
	all := []struct {
		name, group, kind string
		unless            bool
	}{
		{"kube-ovn", "kubeovn.io", "Subnet", false},
		{"multus", "k8s.cni.cncf.io", "NetworkAttachmentDefinition", false},
		{"nodus", "k8s.plugin.opnfv.org", "ProviderNetwork", false},
		{"ovn-kubernetes", "k8s.ovn.org", "UserDefinedNetwork", false},
		{"ovn-kubernetes-nad", "k8s.ovn.org", "EgressIP", segments},
		{"sriov-dra", "resource.k8s.io", "DeviceClass", !classes[sriovDriver]},
		{"sriov-operator", "sriovnetwork.openshift.io", "SriovNetwork", false},
		{"whereabouts", "whereabouts.cni.cncf.io", "IPPool", false},
	}
	var out []nf.NetworkFlavor
	for _, f := range all {
		if served := ks.by[schema.GroupKind{Group: f.group, Kind: f.kind}]; len(served) > 0 && !f.unless {
			out = append(out, nf.NetworkFlavor{Name: f.name, Group: f.group, Version: served[0].Version})
		}
	}
	return out
}
