package csar

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// maxPath limits the keys in the path of a value.
const maxPath = 20

// objects yields the objects of all groups.
func objects(out *render.Output) iter.Seq[render.Object] {
	return func(yield func(render.Object) bool) {
		for _, g := range out.Groups {
			for _, o := range g.Objects {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// helmValues removes the parameters that set values of the chart by their paths, and sets
// these values.
func (s *sizing) helmValues(in *render.Input) error {
	values, names := take(in, HelmParameter), take(in, HelmNamesParameter)
	byPath, isObject := values.(map[string]any)
	if values != nil && !isObject {
		return unusable(HelmParameter, "must be an object: values of the chart by their paths")
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if err := set(in.Inputs.Parameters, HelmParameter, path, byPath[path]); err != nil {
			return err
		}
	}
	byVDU, isObject := names.(map[string]any)
	if names != nil && !isObject {
		return unusable(HelmNamesParameter, "must be an object: {VDU: {replica: path of the chart's value}}")
	}
	for _, vdu := range slices.Sorted(maps.Keys(byVDU)) {
		of, _ := byVDU[vdu].(map[string]any)
		path, _ := of["replica"].(string)
		if path == "" {
			return unusable(HelmNamesParameter, fmt.Sprintf("%q must be an object with replica, the path of a value of the chart", nf.Clip(vdu, maxQuote)))
		}
		if s.workloads == nil {
			return unusable(HelmNamesParameter, "requires "+nf.FlavorParameter)
		}
		if _, found := s.workloads[vdu]; !found {
			return unusable(HelmNamesParameter, fmt.Sprintf("%q is not a VDU of the flavor", nf.Clip(vdu, maxQuote)))
		}
		if _, given := s.counts[vdu]; !given {
			continue // the chart's own number is known only after rendering
		}
		count, _ := s.pods(vdu, 0)
		s.valued[vdu] = true
		if err := set(in.Inputs.Parameters, HelmNamesParameter, path, count); err != nil {
			return err
		}
	}
	return nil
}

// set sets the value at a path such as "web.replicas"; "\." is a dot in a key. It copies
// the values on the way, which may be those of the request.
func set(values map[string]any, parameter, path string, value any) error {
	keys := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
	if len(keys) > maxPath || slices.Contains(keys, "") || strings.ContainsAny(path, "[]{},=\x00") {
		return unusable(parameter, fmt.Sprintf("%q is not the path of a value: use keys with dots between them; values in lists are set by parameters of the chart", nf.Clip(path, maxQuote)))
	}
	for i, key := range keys {
		key = strings.ReplaceAll(key, "\x00", ".")
		if i == len(keys)-1 {
			values[key] = value
			break
		}
		within, isObject := values[key].(map[string]any)
		if !isObject && values[key] != nil {
			return unusable(parameter, fmt.Sprintf("%q leads into a value that is not an object", nf.Clip(path, maxQuote)))
		}
		if within = maps.Clone(within); within == nil {
			within = map[string]any{}
		}
		values[key] = within
		values = within
	}
	return nil
}
