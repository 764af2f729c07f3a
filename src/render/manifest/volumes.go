package manifest

import (
	"cmp"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// bindings returns the uses of volumes of the metadata. It omits those in which a fault
// was reported, or a value is unknown, and those whose volume is empty.
func (e *expander) bindings(m metadata) (out []nf.Binding) {
	for i, n := range m.volumes {
		e.file = m.at.file
		r := entryReader{e: e, field: fmt.Sprintf("volumes[%d]", i)}
		if use, ok := r.readUse(n); ok {
			out = append(out, nf.Binding{VolumeUse: use, At: r.place(n)})
		}
	}
	for _, v := range nf.CheckBindings(out) {
		e.report.add(place{v.File, v.Line}, v.Field, "%s", v.Message)
	}
	return out
}

// readUse returns the use of a volume, and whether it is complete. Without a claim, that
// with the name of the volume uses it.
func (r *entryReader) readUse(n *yaml.Node) (use nf.VolumeUse, ok bool) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "", "must be a mapping")
		return use, false
	}
	for f := range fields(n) {
		switch f.key.Value {
		case "volume":
			use.Volume = r.name(f, nf.VolumeSubject)
		case "claim":
			use.Claim = r.text(f.value, ".claim")
		default:
			r.unknownKey(f.key, "", "volume", "claim")
		}
	}
	if get(n, "volume") == nil {
		r.wrong(n, ".volume", "is missing")
	}
	use.Claim = cmp.Or(use.Claim, use.Volume)
	return use, !r.hollow && use.Volume != ""
}
