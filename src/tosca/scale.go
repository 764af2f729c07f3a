package tosca

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Flavor returns a flavor. It returns nf.Invalid for an unknown one, and names those that
// there are. An empty id is the only flavor.
func (t Topology) Flavor(id string) (Flavor, error) {
	if id == "" && len(t.Flavors) == 1 {
		for _, f := range t.Flavors {
			return f, nil
		}
	}
	f, found := t.Flavors[id]
	if !found {
		return f, refuse("flavour_id", "%q is not a flavor of the VNF descriptor; it has %s", nf.Clip(id, maxQuote), list(t.Flavors))
	}
	return f, nil
}

// Counts returns the pods by VDU of an instantiation level; empty: the default one. A VDU
// is absent if the level gives no number. Counts returns nf.Invalid for an unknown level,
// and if there is no default one among several.
func (f Flavor) Counts(level string) (map[string]int, error) {
	l, err := f.Level(level)
	return l.Counts, err
}

// AspectLevels returns the level of each scaling aspect at an instantiation level; empty:
// the default one. It is 0 for all if the level is unknown.
func (f Flavor) AspectLevels(level string) map[string]int {
	l, _ := f.Level(level)
	out := make(map[string]int, len(f.Aspects))
	for id := range f.Aspects {
		out[id] = l.Aspects[id]
	}
	return out
}

// Level returns an instantiation level; empty: the default one, or one without numbers if
// the flavor has no levels. It returns nf.Invalid for an unknown level, and if there is
// no default one among several.
func (f Flavor) Level(id string) (Level, error) {
	if id == "" {
		id = f.DefaultLevel
	}
	if id == "" && len(f.Levels) == 0 {
		return Level{}, nil
	}
	l, found := f.Levels[id]
	switch {
	case found:
		return l, nil
	case id == "":
		return l, refuse("instantiation_level_id", "is required: the flavor %q has %s, and none of them is the default", f.ID, list(f.Levels))
	}
	return l, refuse("instantiation_level_id", "%q is not a level of the flavor %q; it has %s", nf.Clip(id, maxQuote), f.ID, list(f.Levels))
}

// Delta returns the pods by VDU that steps of a scaling aspect add, beginning at a level;
// steps < 0 remove pods, and the numbers are negative. It returns nf.Invalid for an
// unknown aspect, and for steps that lead below level 0 or above the maximum.
func (f Flavor) Delta(aspect string, from, steps int) (map[string]int, error) {
	a, found := f.Aspects[aspect]
	if !found {
		return nil, refuse("aspectId", "%q is not a scaling aspect of the flavor %q; it has %s", nf.Clip(aspect, maxQuote), f.ID, list(f.Aspects))
	}
	to := from + steps
	if from < 0 || steps > maxNumber || steps < -maxNumber || to < 0 || to > a.MaxLevel {
		return nil, refuse("numberOfSteps", "%d steps from level %d lead out of the levels 0 to %d of the aspect %q", steps, from, a.MaxLevel, aspect)
	}
	sign, low, high := 1, from, to
	if steps < 0 {
		sign, low, high = -1, to, from
	}
	out := map[string]int{}
	for i, step := range a.Steps {
		begin, end := max(low, i), min(high, i+1)
		if i == len(a.Steps)-1 { // repeated
			end = high
		}
		for vdu, count := range step {
			if end > begin {
				out[vdu] += sign * count * (end - begin)
			}
		}
	}
	return out, nil
}

// Moved returns the pods by VDU that are added when scaling aspects go from their levels at
// an instantiation level to others; those that are removed are negative. Aspects that are
// not given stay. It returns nf.Invalid as Delta does.
func (f Flavor) Moved(level string, to map[string]int) (map[string]int, error) {
	from, out := f.AspectLevels(level), map[string]int{}
	for _, aspect := range slices.Sorted(maps.Keys(to)) {
		delta, err := f.Delta(aspect, from[aspect], to[aspect]-from[aspect])
		if err != nil {
			return nil, err
		}
		for vdu, n := range delta {
			out[vdu] += n
		}
	}
	return out, nil
}

// Match returns the VDUs by the names of workloads, of which some have the names in vdus. A
// workload with the name of a VDU is it. Otherwise it is the VDU whose name is the longest
// beginning or end of its name, as charts name their objects, if no workload has the VDU's
// name.
func Match(vdus map[string]string, workloads []string) map[string]string {
	out, exact := map[string]string{}, map[string]bool{}
	for _, w := range workloads {
		if vdu, found := vdus[w]; found {
			out[w], exact[vdu] = vdu, true
		}
	}
	for _, w := range workloads {
		if _, found := out[w]; found {
			continue
		}
		longest := ""
		for _, name := range slices.Sorted(maps.Keys(vdus)) {
			vdu := vdus[name]
			if !exact[vdu] && len(name) > len(longest) && (strings.HasPrefix(w, name+"-") || strings.HasSuffix(w, "-"+name)) {
				longest, out[w] = name, vdu
			}
		}
	}
	return out
}

func refuse(field, format string, args ...any) error {
	return nf.E(nf.Invalid, "use", "the VNF descriptor", nf.Violations{{Field: field, Message: fmt.Sprintf(format, args...)}})
}

// list names the keys of a map, for people.
func list[V any](of map[string]V) string {
	if len(of) == 0 {
		return "none"
	}
	keys := slices.Sorted(maps.Keys(of))
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%q", nf.Clip(key, maxQuote))
	}
	return strings.Join(keys[:min(len(keys), maxFaults)], ", ")
}
