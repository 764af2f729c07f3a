package aai

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30

	featurePrefix = nf.FeaturePrefix
	cpuidPrefix   = featurePrefix + "cpu-cpuid."
	pciPrefix     = featurePrefix + "pci-"

	multithreading = featurePrefix + "cpu-hardware_multithreading"
)

// Node is a node of a cloud region that pods can be scheduled to.
type Node struct {
	Labels    map[string]string
	CPUs      int64            // allocatable, as are the others
	Memory    int64            // bytes
	Storage   int64            // bytes of ephemeral storage
	HugePages map[string]int64 // bytes by size of the pages: "2Mi", "1Gi"
}

// NodeClass is the nodes of a region with the same features.
type NodeClass struct {
	ID       string // changes with the features only
	CPUs     int64  // of the smallest node, as are the others
	Memory   int64
	Storage  int64
	Features []Feature
}

// Feature is a hardware feature of a class of nodes, in the terms of ONAP's HPA.
type Feature struct {
	Name         string            // "hugePages"
	Architecture string            // "generic", "Intel64"
	Attributes   map[string]string // JSON texts: {"value":"2","unit":"MB"}
}

// ClassesOf returns the classes of nodes, in the order of their ids.
func ClassesOf(nodes []Node) []NodeClass {
	classes := make(map[string]NodeClass)
	for _, n := range nodes {
		features := n.features()
		id := classID(features)
		c, exists := classes[id]
		if !exists {
			c = NodeClass{ID: id, CPUs: n.CPUs, Memory: n.Memory, Storage: n.Storage, Features: features}
		}
		c.CPUs, c.Memory, c.Storage = min(c.CPUs, n.CPUs), min(c.Memory, n.Memory), min(c.Storage, n.Storage)
		classes[id] = c
	}
	return slices.SortedFunc(maps.Values(classes), func(a, b NodeClass) int { return cmp.Compare(a.ID, b.ID) })
}

// NodesOf returns the usable nodes of a region.
func NodesOf(rooms []nf.NodeRoom) []Node {
	out := make([]Node, len(rooms))
	for i, room := range rooms {
		n := Node{
			Labels: make(map[string]string, len(room.Features)), HugePages: map[string]int64{},
			CPUs: room.Total[nf.CPUResource] / 1000, Memory: room.Total["memory"], Storage: room.Total["ephemeral-storage"],
		}
		for name, value := range room.Features {
			n.Labels[nf.FeaturePrefix+name] = value
		}
		for name, bytes := range room.Total {
			if size, is := strings.CutPrefix(name, "hugepages-"); is {
				n.HugePages[size] = bytes
			}
		}
		out[i] = n
	}
	return out
}

// FlavorLabels returns the labels that give nodes the features of a class: one set for
// each combination that a node of the class has. A class whose features are not labels has
// one empty set. If no node is of the class, found is false.
func FlavorLabels(nodes []Node, class string) (sets []map[string]string, found bool) {
	for _, n := range nodes {
		if classID(n.features()) != class {
			continue
		}
		set := map[string]string{}
		for label, value := range n.Labels {
			if value == "true" && isFeature(label) {
				set[label] = value
			}
		}
		if !slices.ContainsFunc(sets, func(other map[string]string) bool { return maps.Equal(other, set) }) {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b map[string]string) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) // maps are printed in the order of their keys
	return sets, len(sets) > 0
}

// isFeature reports whether a label is one that Node.features reads.
func isFeature(label string) bool {
	if label == multithreading || strings.HasPrefix(label, cpuidPrefix) {
		return true
	}
	_, _, is := devicesOf(label)
	return is
}

// devicePattern is the end of a label for the presence of PCI devices. By default, it
// has their class and vendor. More fields can follow, if deviceLabelFields of Node
// Feature Discovery lists them.
var devicePattern = regexp.MustCompile(`^([0-9a-f]+_([0-9a-f]{4}))(?:_[0-9a-f]+)*\.present$`)

// devicesOf returns the class with the vendor ("0300_10de"), and the vendor, of the PCI
// devices whose presence a label states.
func devicesOf(label string) (group, vendor string, found bool) {
	name, isPCI := strings.CutPrefix(label, pciPrefix)
	match := devicePattern.FindStringSubmatch(name)
	if !isPCI || match == nil {
		return "", "", false
	}
	return match[1], match[2], true
}

// classID returns the id of the class of nodes with features.
func classID(features []Feature) string {
	sum := sha256.Sum256(fmt.Append(nil, features)) // maps are printed in the order of their keys
	return "k8s-" + hex.EncodeToString(sum[:5])
}

// features returns the features of a node, except for its size.
func (n Node) features() []Feature {
	var out []Feature
	for _, size := range slices.Sorted(maps.Keys(n.HugePages)) {
		megabytes, known := map[string]string{"2Mi": "2", "1Gi": "1024"}[size]
		if known && n.HugePages[size] > 0 {
			out = append(out, Feature{"hugePages", "generic", map[string]string{"memoryPageSize": quantity(megabytes, "MB")}})
		}
	}
	if n.Labels[multithreading] == "true" {
		out = append(out, Feature{"cpuTopology", "generic", map[string]string{"numCpuThreads": quantity("2", "")}})
	}
	var extensions []string
	seen := make(map[string]bool) // two labels can differ only in the device
	for _, label := range slices.Sorted(maps.Keys(n.Labels)) {
		if name, found := strings.CutPrefix(label, cpuidPrefix); found && n.Labels[label] == "true" {
			extensions = append(extensions, name)
		}
		if group, vendor, found := devicesOf(label); found && n.Labels[label] == "true" && !seen[group] {
			seen[group] = true
			out = append(out, Feature{"pciePassthrough", "generic", map[string]string{"pciVendorId": quantity(vendor, "")}})
		}
	}
	if len(extensions) > 0 {
		out = append(out, Feature{"instructionSetExtensions", "Intel64", map[string]string{"instructionSetExtensions": encode(map[string]any{"value": extensions})}})
	}
	return out
}

// sized returns the features of a class with those of its size.
func (c NodeClass) sized() []Feature {
	disk := quantity(strconv.FormatInt(c.Storage/gibibyte, 10), "GB")
	return append([]Feature{
		{"basicCapabilities", "generic", map[string]string{
			"numVirtualCpu":  quantity(strconv.FormatInt(c.CPUs, 10), ""),
			"virtualMemSize": quantity(strconv.FormatInt(c.Memory/mebibyte, 10), "MB"),
		}},
		{"localStorage", "generic", map[string]string{"diskSize": disk, "ephemeralDiskSize": disk}},
	}, c.Features...)
}

func quantity(value, unit string) string {
	out := map[string]any{"value": value}
	if unit != "" {
		out["unit"] = unit
	}
	return encode(out)
}

// encode returns texts and lists of texts in JSON.
func encode(v map[string]any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return "" // texts are always encoded
	}
	return string(out)
}

// Flavors returns a flavor with its HPA capabilities for each class of a region's
// nodes. They block the deletion of the region in A&AI.
func (s Scheme) Flavors(p Place, classes []NodeClass) []Document {
	var out []Document
	for _, c := range classes {
		d := Document{
			Path: join(p.RegionPath()+"/flavors/flavor", c.ID),
			Attributes: s.marked("", map[string]any{
				"flavor-id": c.ID, "flavor-name": c.ID, "flavor-selflink": s.URL + join("/v1/cloud_regions", p.Region),
				"flavor-vcpus": c.CPUs, "flavor-ram": c.Memory / mebibyte, "flavor-disk": c.Storage / gibibyte,
			}),
		}
		for _, f := range c.sized() {
			d.Children = append(d.Children, s.capability(p, d.Path, c.ID, f))
		}
		sorted(d.Children)
		out = append(out, d)
	}
	return out
}

func (s Scheme) capability(p Place, flavor, class string, f Feature) Document {
	names := slices.Sorted(maps.Keys(f.Attributes))
	key := []string{p.Owner, p.Region, class, f.Name}
	if f.Name != "basicCapabilities" && f.Name != "localStorage" {
		for _, name := range names {
			key = append(key, f.Attributes[name]) // a class can have two sizes of huge pages
		}
	}
	id := uuid(strings.Join(key, "\n"))
	d := Document{
		Path: join(flavor+"/hpa-capabilities/hpa-capability", id),
		Attributes: s.marked("", map[string]any{
			"hpa-capability-id": id, "hpa-feature": f.Name, "architecture": f.Architecture, "hpa-version": "v1",
		}),
	}
	for _, name := range names {
		d.Children = append(d.Children, Document{
			Path:       join(d.Path, "hpa-feature-attributes", name),
			Attributes: s.marked("", map[string]any{"hpa-attribute-key": name, "hpa-attribute-value": f.Attributes[name]}),
		})
	}
	return d
}

// uuid returns the UUID of version 5 of a text, in a namespace of this service.
func uuid(text string) string {
	sum := sha1.Sum([]byte("k8splugin/aai\n" + text))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
