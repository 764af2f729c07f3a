package manifest

import (
	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// readProfiles reads the names of the compute profiles. Their values may have variables.
func (m *metadataReader) readProfiles(f field) {
	switch {
	case isNull(f.value):
	case f.value.Kind != yaml.MappingNode:
		m.add(f.value, f.key.Value, "must be a mapping of names to compute profiles")
	case len(f.value.Content) > 2*nf.MaxProfiles:
		m.add(f.value.Content[2*nf.MaxProfiles], f.key.Value, "has more than %d entries", nf.MaxProfiles)
	default:
		for p := range fields(f.value) {
			if fault := nf.CheckProfileName(p.key.Value); fault != "" {
				m.add(p.key, f.key.Value, "%s", fault)
			}
			m.profiles = append(m.profiles, p)
		}
	}
}

// profiles returns the compute profiles of the metadata. Values that are unknown are left
// out.
func (e *expander) profiles(m metadata) map[string]nf.ComputeProfile {
	out := map[string]nf.ComputeProfile{}
	for _, f := range m.profiles {
		e.file = m.at.file
		r := entryReader{e: e, field: "compute_profiles." + f.key.Value}
		value := r.value(f.value)
		if r.hollow {
			continue
		}
		profile, wrong := render.ReadProfile(known(value))
		at := r.place(f.value)
		for _, v := range wrong {
			v = at.Violation(v.Field, v.Message)
			e.report.add(place{v.File, v.Line}, v.Field, "%s", v.Message)
		}
		out[f.key.Value] = profile
	}
	return out
}

// known returns a value without the unknown values in it.
func known(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			if inner != (unknown{}) {
				out[name] = known(inner)
			}
		}
		return out
	case []any:
		var out []any
		for _, inner := range v {
			if !holdsUnknown(inner) {
				out = append(out, known(inner))
			}
		}
		return out
	}
	return value
}
