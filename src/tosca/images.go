package tosca

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const maxImages = 200

// images returns the software images of the node templates, in the order of the files.
func (s *scope) images() []nf.SoftwareImage {
	var out []nf.SoftwareImage
	for _, t := range s.parts {
		for name, node := range pairs(get(t.root, "topology_template", "node_templates")) {
			about := s.property(entity{typ: scalar(get(node, "type")), node: node}, "sw_image_data")
			if about == nil || len(out) == maxImages {
				continue
			}
			if image := imageOf(about); image.Name != "" && nf.CheckText("name", name.Value) == nil {
				image.ID, image.Path = nf.Clip(name.Value, maxText), s.r.imageFile(t.file, get(node, "artifacts"))
				out = append(out, image)
			}
		}
	}
	return out
}

// imageOf reads a value of the type tosca.datatypes.nfv.SwImageData. What cannot be read
// is left out.
func imageOf(about *yaml.Node) nf.SoftwareImage {
	text := func(n *yaml.Node, name string) string {
		value := scalar(get(n, name))
		if nf.CheckText(name, value) != nil {
			return ""
		}
		return nf.Clip(value, maxText)
	}
	sum := get(about, "checksum")
	return nf.SoftwareImage{
		Name: text(about, "name"), Version: text(about, "version"), Provider: text(about, "provider"),
		Algorithm: strings.ToUpper(text(sum, "algorithm")), Hash: strings.ToLower(text(sum, "hash")),
		ContainerFormat: strings.ToUpper(text(about, "container_format")), DiskFormat: strings.ToUpper(text(about, "disk_format")),
		MinDisk: bytesOf(text(about, "min_disk")), MinRAM: bytesOf(text(about, "min_ram")), Size: bytesOf(text(about, "size")),
	}
}

// imageFile returns the file of the first artifact of a node template: the clean path of a
// file in the CSAR, or the text as it is, such as the reference of a registry.
func (r *reader) imageFile(from string, artifacts *yaml.Node) string {
	for _, artifact := range pairs(artifacts) {
		file := scalar(get(artifact, "file"))
		if file == "" {
			file = scalar(artifact)
		}
		if file == "" || nf.CheckText("file", file) != nil {
			continue
		}
		for _, name := range [...]string{joined(from, file), file} {
			if name, ok := clean(name); ok {
				if _, found := r.files[name]; found {
					return name
				}
			}
		}
		return nf.Clip(file, maxText)
	}
	return ""
}

// bytesOf returns a scalar-unit.size of TOSCA, such as "2 GB", in bytes; 0 if it is none.
func bytesOf(text string) int64 {
	digits := strings.TrimRight(text, "BbKkMmGgTtIi ")
	number, err := strconv.ParseFloat(digits, 64)
	unit, known := map[string]float64{
		"": 1, "b": 1, "kb": 1e3, "kib": 1 << 10, "mb": 1e6, "mib": 1 << 20, "gb": 1e9, "gib": 1 << 30, "tb": 1e12, "tib": 1 << 40,
	}[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	if size := number * unit; err == nil && known && size >= 0 && size < math.MaxInt64 {
		return int64(size)
	}
	return 0
}
