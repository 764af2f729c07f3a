package sol003

import (
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// attached returns the attachments of a spec after others were requested. Those of a
// connection point replace all that the point has. They are at the place of the former ones:
// the names of interfaces depend on it. An attachment without a point replaces that of the
// same interface of the same workload.
func attached(present, wanted []nf.Attachment) []nf.Attachment {
	out := slices.Clone(present)
	var points []string
	of := map[string][]nf.Attachment{}
	for _, w := range wanted {
		at := slices.IndexFunc(out, func(a nf.Attachment) bool { return a.Point == "" && alike(a, w) })
		switch {
		case w.Point == "" && at < 0:
			out = append(out, w)
			continue
		case w.Point == "":
			out[at] = w
			continue
		case at >= 0: // earlier records do not have the point
			out[at].Point = w.Point
		}
		if of[w.Point] == nil {
			points = append(points, w.Point)
		}
		of[w.Point] = append(of[w.Point], w)
	}
	for _, point := range points {
		is := func(a nf.Attachment) bool { return a.Point == point }
		at := slices.IndexFunc(out, is)
		if out = slices.DeleteFunc(out, is); at < 0 {
			at = len(out)
		}
		out = slices.Insert(out, at, of[point]...)
	}
	return out
}

// alike reports whether two attachments of unknown points are one: they have the same
// interface or, without one, the same network.
func alike(a, b nf.Attachment) bool {
	return a.Workload == b.Workload && a.Interface == b.Interface && (b.Interface != "" || a.Network == b.Network)
}
