package helm

import (
	"maps"
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/syntax"
)

// profilesAnnotation is the annotation in Chart.yaml that declares compute profiles: a YAML
// text, as compute_profiles of metadata.yaml but without variables.
const profilesAnnotation = "k8splugin.io/compute-profiles"

const maxProfilesText = 64 << 10 // bytes of the annotation

// profiles returns the compute profiles that a chart declares. Those of subcharts do not
// count: their authors do not know the workloads of the chart.
func profiles(c *chart.Chart, r *report) map[string]nf.ComputeProfile {
	const field = "annotations." + profilesAnnotation
	at := place{file: chartFile}
	text := []byte(c.Metadata.Annotations[profilesAnnotation])
	switch {
	case len(text) == 0:
		return nil
	case len(text) > maxProfilesText:
		r.add(at, field, "has more than %d bytes", maxProfilesText)
		return nil
	case mayRefer(text):
		r.add(at, field, "has aliases; repeat the values")
		return nil
	}
	var declared map[string]any
	if err := guarded(func() error { return yaml.UnmarshalStrict(text, &declared) }); err != nil {
		_, message := syntax.YAML(err) // the line is one of the annotation
		r.add(at, field, "must be a mapping of names to compute profiles: %s", message)
		return nil
	}
	if len(declared) > nf.MaxProfiles {
		r.add(at, field, "has more than %d entries", nf.MaxProfiles)
		return nil
	}
	out := make(map[string]nf.ComputeProfile, len(declared))
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if fault := nf.CheckProfileName(name); fault != "" {
			r.add(at, field, "%s", fault)
			continue
		}
		profile, wrong := render.ReadProfile(declared[name])
		for _, v := range wrong {
			below := "." + name
			if v.Field != "" {
				below += "." + v.Field
			}
			r.add(at, field+below, "%s", v.Message)
		}
		out[name] = profile
	}
	return out
}
