package tosca

import (
	"maps"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// The types of the policies of scaling.
const (
	typeLevels       = "tosca.policies.nfv.InstantiationLevels"
	typeVDULevels    = "tosca.policies.nfv.VduInstantiationLevels"
	typeInitialDelta = "tosca.policies.nfv.VduInitialDelta"
	typeAspects      = "tosca.policies.nfv.ScalingAspects"
	typeAspectDeltas = "tosca.policies.nfv.VduScalingAspectDeltas"
)

// scaling reads the policies of levels and aspects.
func (s *scope) scaling(f *Flavor) {
	for _, p := range s.of(typeLevels) {
		s.levels(p, f)
	}
	for _, p := range s.of(typeVDULevels) {
		s.counts(p, f)
	}
	for _, p := range s.of(typeInitialDelta) {
		count := s.number(p.file, get(s.property(p, "initial_delta"), "number_of_instances"), "number_of_instances", -1)
		for vdu := range s.targets(p, f) {
			v := f.VDUs[vdu]
			v.Initial = count
			f.VDUs[vdu] = v
		}
	}
	s.readDeltas(f)
	for _, p := range s.of(typeAspects) {
		for id, node := range s.mapping(p, "aspects") {
			f.Aspects[id.Value] = s.aspect(p, id.Value, node)
		}
		if len(f.Aspects) > maxLevels {
			s.r.fault(p.file, p.node, "the flavor %q has more than %d scaling aspects", s.id, maxLevels)
			return
		}
	}
	if len(f.Levels) > maxLevels {
		s.r.fault(s.main.file, nil, "the flavor %q has more than %d instantiation levels", s.id, maxLevels)
		return
	}
	s.derive(f)
	s.check(f)
}

// of returns the policies of a type.
func (s *scope) of(typ string) []entity {
	var out []entity
	for _, p := range s.policies {
		if s.r.derives(p.typ, typ) {
			out = append(out, p)
		}
	}
	return out
}

// targets returns the VDUs that a policy is about. Others are ignored with a warning, as
// Tacker ignores them.
func (s *scope) targets(p entity, f *Flavor) map[string]bool {
	out := map[string]bool{}
	for target := range s.r.list(p.file, get(p.node, "targets"), "targets") {
		if _, found := f.VDUs[scalar(target)]; found {
			out[scalar(target)] = true
		} else {
			s.r.warn(p.file, target, "the policy %q has the target %q, which is not a VDU", p.name, nf.Clip(scalar(target), maxQuote))
		}
	}
	return out
}

// levels reads the instantiation levels of the VNF.
func (s *scope) levels(p entity, f *Flavor) {
	for id, node := range s.mapping(p, "levels") {
		l := f.level(id.Value)
		l.Description = nf.Clip(scalar(get(node, "description")), maxText)
		for aspect, value := range s.r.mapping(p.file, get(node, "scale_info"), "scale_info") {
			if l.Aspects[aspect.Value] = s.number(p.file, get(value, "scale_level"), "scale_level", 0); len(l.Aspects) > maxLevels {
				s.r.fault(p.file, aspect, "the level %q has more than %d scaling aspects", nf.Clip(id.Value, maxQuote), maxLevels)
				return
			}
		}
		if f.Levels[id.Value] = l; len(f.Levels) > maxLevels {
			return // the caller reports it
		}
	}
	if f.DefaultLevel = s.text(p, "default_level"); f.DefaultLevel == "" && len(f.Levels) == 1 {
		for id := range f.Levels {
			f.DefaultLevel = id
		}
	}
	if _, found := f.Levels[f.DefaultLevel]; !found && f.DefaultLevel != "" {
		s.r.fault(p.file, s.property(p, "default_level"), "default_level %q is not one of the levels", f.DefaultLevel)
	}
}

func (f *Flavor) level(id string) Level {
	if l, found := f.Levels[id]; found {
		return l
	}
	return Level{Counts: map[string]int{}, Aspects: map[string]int{}}
}

// counts reads the numbers of pods of the levels.
func (s *scope) counts(p entity, f *Flavor) {
	targets := s.targets(p, f)
	for id, node := range s.mapping(p, "levels") {
		count := s.number(p.file, get(node, "number_of_instances"), "number_of_instances", -1)
		if count < 0 {
			continue
		}
		l := f.level(id.Value)
		for vdu := range targets {
			l.Counts[vdu] = count
		}
		if f.Levels[id.Value] = l; len(f.Levels) > maxLevels {
			return // the caller reports it
		}
	}
}

// aspect reads a scaling aspect with the pods of its steps.
func (s *scope) aspect(p entity, id string, node *yaml.Node) Aspect {
	out := Aspect{
		Name: nf.Clip(scalar(get(node, "name")), maxText), Description: nf.Clip(scalar(get(node, "description")), maxText),
		MaxLevel: s.number(p.file, get(node, "max_scale_level"), "max_scale_level", 0),
	}
	deltas := s.deltas[id]
	for step := range s.r.list(p.file, get(node, "step_deltas"), "step_deltas") {
		if len(out.Steps) == maxLevels {
			s.r.fault(p.file, step, "step_deltas has more than %d entries", maxLevels)
			break
		}
		out.Steps = append(out.Steps, deltas[scalar(step)])
	}
	if len(out.Steps) == 0 && len(deltas) == 1 {
		for _, every := range deltas {
			out.Steps = append(out.Steps, every)
		}
	}
	return out
}

// readDeltas reads the deltas of the aspects.
func (s *scope) readDeltas(f *Flavor) {
	s.deltas = map[string]map[string]map[string]int{}
	for _, p := range s.of(typeAspectDeltas) {
		aspect, targets := s.text(p, "aspect"), s.targets(p, f)
		if s.deltas[aspect] == nil {
			s.deltas[aspect] = map[string]map[string]int{}
		}
		for id, node := range s.mapping(p, "deltas") {
			of := s.deltas[aspect][id.Value]
			if of == nil {
				of = map[string]int{}
				s.deltas[aspect][id.Value] = of
			}
			if len(s.deltas) > maxLevels || len(s.deltas[aspect]) > maxLevels {
				s.r.fault(p.file, id, "there are more than %d scaling aspects with deltas, or deltas of an aspect", maxLevels)
				return
			}
			count := s.number(p.file, get(node, "number_of_instances"), "number_of_instances", 0)
			for vdu := range targets {
				of[vdu] += count
			}
		}
	}
}

// derive adds the pods of levels that only name the levels of aspects: the initial ones,
// and those of all aspects.
func (s *scope) derive(f *Flavor) {
	for _, l := range f.Levels {
		given := maps.Clone(l.Counts)
		for id := range l.Aspects {
			added, err := f.Delta(id, 0, l.Aspects[id])
			if err != nil {
				continue // check reports it
			}
			for vdu := range f.Aspects[id].vdus() {
				if _, is := given[vdu]; is || f.VDUs[vdu].Initial < 0 {
					continue
				}
				if _, begun := l.Counts[vdu]; !begun {
					l.Counts[vdu] = f.VDUs[vdu].Initial
				}
				l.Counts[vdu] += added[vdu]
			}
		}
	}
}

// vdus returns the VDUs that an aspect scales.
func (a Aspect) vdus() map[string]bool {
	out := map[string]bool{}
	for _, step := range a.Steps {
		for vdu := range step {
			out[vdu] = true
		}
	}
	return out
}

// check warns of levels that the aspects and profiles do not allow.
func (s *scope) check(f *Flavor) {
	for _, p := range s.of(typeLevels) {
		for id, node := range pairs(s.property(p, "levels")) {
			for aspect, value := range pairs(get(node, "scale_info")) {
				if a, found := f.Aspects[aspect.Value]; !found || f.Levels[id.Value].Aspects[aspect.Value] > a.MaxLevel {
					s.r.warn(p.file, value, "the level %q has a level of the aspect %q that the flavor does not have", id.Value, aspect.Value)
				}
			}
		}
	}
	for _, p := range s.of(typeVDULevels) {
		for target := range items(get(p.node, "targets")) {
			s.checkProfile(p, scalar(target), f)
		}
	}
}

func (s *scope) checkProfile(p entity, vdu string, f *Flavor) {
	for id, node := range pairs(s.property(p, "levels")) {
		v, count := f.VDUs[vdu], f.Levels[id.Value].Counts[vdu]
		if v.Max > 0 && (count < v.Min || count > v.Max) {
			s.r.warn(p.file, node, "the level %q has %d pods of %q, which its vdu_profile does not allow", id.Value, count, vdu)
		}
	}
}
