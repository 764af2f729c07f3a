package csar

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/csar"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// The parameters that select the workloads that get the size of an instance. The size is
// nf.FlavorParameter, nf.LevelParameter and nf.ScaleParameter.
const (
	MappingParameter   = "vdu_mapping"      // the workload of a VDU: {VDU: {kind, name}}
	HelmParameter      = "helm_parameters"  // values of the chart by path: {a.b: 1}
	HelmNamesParameter = "helm_value_names" // the value of the chart that gets the pods of a VDU: {VDU: {replica: path}}
)

// workload is what a VDU is in Kubernetes. An empty kind is any kind.
type workload struct{ kind, name string }

// sizing is the size that a request asks for.
type sizing struct {
	flavor, level string
	counts        map[string]int      // pods by VDU, as the level gives them
	moved         map[string]int      // pods by VDU that the levels of scaling aspects add
	workloads     map[string]workload // by VDU; nil: no size was asked for
	valued        map[string]bool     // VDUs whose pods are a value of the chart
	scripts       map[string]tosca.Script
}

// descriptor reads the VNF descriptor of a CSAR.
func descriptor(c csar.CSAR, files render.Files) (tosca.Topology, error) {
	return tosca.Read(files, c.VNFD.Files[0])
}

// take removes a parameter from those of the instance, and returns it.
func take(in *render.Input, name string) any {
	value := in.Inputs.Parameters[name]
	delete(in.Inputs.Parameters, name)
	return value
}

// text returns a parameter that is a text, or "".
func text(in *render.Input, name string) (string, error) {
	value := take(in, name)
	out, isText := value.(string)
	if value != nil && !isText {
		return "", unusable(name, "must be a text")
	}
	return out, nil
}

// sized removes the parameters of the size, and returns what they ask for. The descriptor
// is read only if they ask for something.
func sized(c csar.CSAR, in *render.Input) (*sizing, error) {
	flavor, err := text(in, nf.FlavorParameter)
	if err != nil {
		return nil, err
	}
	level, err := text(in, nf.LevelParameter)
	if err != nil {
		return nil, err
	}
	scale, err := aspectLevels(in)
	if err != nil {
		return nil, err
	}
	mapping := take(in, MappingParameter)
	out := &sizing{flavor: flavor, level: level}
	if flavor == "" && level == "" && len(scale) == 0 {
		return out, nil
	}
	top, err := descriptor(c, in.Files)
	if err != nil {
		return nil, fmt.Errorf("cannot read the VNF descriptor: %w", err)
	}
	f, err := top.Flavor(flavor)
	if err != nil {
		return nil, parameter(err)
	}
	out.scripts, out.workloads, out.valued = f.Scripts, map[string]workload{}, map[string]bool{}
	if out.counts, err = f.Counts(level); err != nil {
		return nil, parameter(err)
	}
	if out.moved, err = f.Moved(level, scale); err != nil {
		return nil, unusable(nf.ScaleParameter, nf.ViolationsOf(err)[0].Message)
	}
	for id, vdu := range f.VDUs {
		out.workloads[id] = workload{vdu.Workload, vdu.Name}
	}
	return out, out.mapped(mapping)
}

// aspectLevels removes the levels of scaling aspects from the parameters, and returns them.
func aspectLevels(in *render.Input) (map[string]int, error) {
	value := take(in, nf.ScaleParameter)
	byAspect, isObject := value.(map[string]any)
	if value != nil && !isObject {
		return nil, unusable(nf.ScaleParameter, "must be an object: {scaling aspect: level}")
	}
	out := map[string]int{}
	for _, aspect := range slices.Sorted(maps.Keys(byAspect)) {
		level, isWhole := render.WholeNumber(byAspect[aspect])
		if !isWhole || level < 0 || level > math.MaxInt32 {
			return nil, unusable(nf.ScaleParameter, fmt.Sprintf("the level of %q must be a whole number, 0 or more", nf.Clip(aspect, maxQuote)))
		}
		out[aspect] = int(level)
	}
	return out, nil
}

// pods returns the pods of a VDU whose workload or chart has a number of its own. Given is
// false if that number is right.
func (s *sizing) pods(vdu string, own int64) (n int64, given bool) {
	count, counted := s.counts[vdu]
	if counted {
		own = int64(count)
	}
	return max(own+int64(s.moved[vdu]), 0), counted || s.moved[vdu] != 0
}

// parameter makes the violations of a descriptor's value those of the parameter.
func parameter(err error) error {
	v := slices.Clone(nf.ViolationsOf(err))
	for i := range v {
		if v[i].Field != "" {
			v[i].Field = "parameters." + v[i].Field
		}
	}
	return nf.E(nf.Invalid, "render", "the CSAR", v)
}

// mapped replaces the workloads of VDUs by those that the request names.
func (s *sizing) mapped(mapping any) error {
	byVDU, isObject := mapping.(map[string]any)
	if mapping != nil && !isObject {
		return unusable(MappingParameter, "must be an object: the kind and name of the workload by VDU")
	}
	for _, vdu := range slices.Sorted(maps.Keys(byVDU)) {
		if _, found := s.workloads[vdu]; !found {
			return unusable(MappingParameter, fmt.Sprintf("%q is not a VDU of the flavor", nf.Clip(vdu, maxQuote)))
		}
		of, _ := byVDU[vdu].(map[string]any)
		kind, _ := of["kind"].(string)
		name, _ := of["name"].(string)
		if name == "" {
			return unusable(MappingParameter, fmt.Sprintf("%q must have the name of a workload, and may have its kind", nf.Clip(vdu, maxQuote)))
		}
		s.workloads[vdu] = workload{kind, name}
	}
	return nil
}

// scalable reports whether a level can change the pods of an object: it is a Deployment,
// StatefulSet or ReplicaSet, or it has replicas and the request or the descriptor names its kind.
func scalable(o render.Object, named bool) bool {
	switch o.GetKind() {
	case "Deployment", "StatefulSet", "ReplicaSet":
		return true
	}
	spec, _ := o.Object["spec"].(map[string]any)
	_, replicated := spec["replicas"]
	return named && replicated
}

// apply gives the workloads of VDUs the pods of their levels. A workload that an autoscaler
// of the package scales keeps its own. It returns nf.Invalid if a VDU of a scaling aspect
// does not have one workload.
func (s *sizing) apply(out *render.Output) error {
	auto := map[workload]bool{}
	for o := range objects(out) {
		if o.GetKind() == "HorizontalPodAutoscaler" {
			auto[target(o)] = true
		}
	}
	for _, vdu := range slices.Sorted(maps.Keys(s.workloads)) {
		if _, given := s.pods(vdu, 0); !given {
			continue
		}
		if err := s.resize(out, vdu, auto); err != nil {
			return err
		}
	}
	return nil
}

// resize gives the workload of a VDU its pods.
func (s *sizing) resize(out *render.Output, vdu string, auto map[workload]bool) error {
	want, found := s.workloads[vdu], s.named(out, vdu)
	moved := s.moved[vdu] != 0
	add := len(found) == 0 && moved && !s.valued[vdu]
	if add {
		found = s.resembling(out, vdu)
	}
	_, counted := s.counts[vdu]
	switch {
	case len(found) == 0 && s.valued[vdu]:
		return nil
	case len(found) == 0 && moved:
		return unusable(nf.ScaleParameter, fmt.Sprintf("no workload with replicas is named %q, which is that of the VDU %q; if its pods belong to a custom resource, %s must have its kind", want.name, vdu, MappingParameter))
	case len(found) == 0:
		out.Warnings = append(out.Warnings, fmt.Sprintf("no workload with replicas is named %q: the instantiation level does not change the pods of the VDU %q; if they belong to a custom resource, %s must have its kind", want.name, vdu, MappingParameter))
		return nil
	case len(found) > 1 && moved && (add || !counted):
		return unusable(nf.ScaleParameter, fmt.Sprintf("several workloads can be that of the VDU %q: %s must have the name of one", vdu, MappingParameter))
	}
	for _, o := range found {
		spec := sizable(o, auto)
		switch {
		case spec == nil:
		case add: // the instantiation level has given it no number
			spec["replicas"] = max(replicas(spec)+int64(s.moved[vdu]), 0)
		default:
			spec["replicas"], _ = s.pods(vdu, replicas(spec))
		}
	}
	return nil
}

// named returns the workloads with the name of a VDU.
func (s *sizing) named(out *render.Output, vdu string) (found []render.Object) {
	want := s.workloads[vdu]
	for o := range objects(out) {
		if o.GetName() == want.name && (want.kind == "" || o.GetKind() == want.kind) && scalable(o, want.kind != "") {
			found = append(found, o)
		}
	}
	return found
}

// resembling returns the workloads whose names resemble that of a VDU, as charts name them.
func (s *sizing) resembling(out *render.Output, vdu string) (found []render.Object) {
	vdus := map[string]string{}
	for id, w := range s.workloads {
		vdus[w.name] = id
	}
	var all []render.Object
	var names []string
	for o := range objects(out) {
		if scalable(o, false) {
			all, names = append(all, o), append(names, o.GetName())
		}
	}
	matched := tosca.Match(vdus, names)
	return slices.DeleteFunc(all, func(o render.Object) bool { return matched[o.GetName()] != vdu })
}

// sizable returns the spec of a workload; nil if it is malformed, or an autoscaler of the
// package sets its pods.
func sizable(o render.Object, auto map[workload]bool) map[string]any {
	spec, _ := o.Object["spec"].(map[string]any)
	if auto[workload{o.GetKind(), o.GetName()}] {
		return nil
	}
	return spec
}

// replicas returns the pods of a workload.
func replicas(spec map[string]any) int64 {
	if n, isNumber := render.WholeNumber(spec["replicas"]); isNumber {
		return n
	}
	return 1 // the default of Kubernetes
}

// target returns the workload that an autoscaler scales.
func target(o render.Object) workload {
	spec, _ := o.Object["spec"].(map[string]any)
	of, _ := spec["scaleTargetRef"].(map[string]any)
	kind, _ := of["kind"].(string)
	name, _ := of["name"].(string)
	return workload{kind, name}
}

// describe adds the flavors and levels of the descriptor to the parameters of the
// package. The descriptor's faults are warnings: an instance need not use it.
func describe(out *render.Summary, c csar.CSAR, files render.Files, charted bool) {
	top, err := descriptor(c, files)
	for _, v := range nf.ViolationsOf(err) {
		out.Warnings = append(out.Warnings, v.String())
	}
	for _, w := range top.Warnings {
		if !slices.Contains(out.Warnings, w) { // those of imports are in both
			out.Warnings = append(out.Warnings, w)
		}
	}
	runs, levels, aspects := false, map[string]bool{}, map[string]bool{}
	for _, f := range top.Flavors {
		runs = runs || scripted(f.Scripts)
		for id := range f.Levels {
			levels[id] = true
		}
		for id := range f.Aspects {
			aspects[id] = true
		}
	}
	if !describesVDUs(top) && !runs {
		return
	}
	flavors := fmt.Sprintf("deployment flavor of the VNF descriptor: %s", shown(top.Flavors))
	out.Variables = append(out.Variables, nf.Variable{Name: nf.FlavorParameter, Type: "string", Description: flavors})
	if len(levels) > 0 {
		out.Variables = append(out.Variables, nf.Variable{Name: nf.LevelParameter, Type: "string", Description: "instantiation level of the flavor, which sets the replicas of the VDUs: " + shown(levels)})
	}
	if len(aspects) > 0 {
		out.Variables = append(out.Variables, nf.Variable{Name: nf.ScaleParameter, Type: "object", Description: "levels of scaling aspects, {aspect: level}, in place of those of the instantiation level: " + shown(aspects)})
	}
	if describesVDUs(top) {
		out.Variables = append(out.Variables, nf.Variable{Name: MappingParameter, Type: "object", Description: "the kind and name of the workload of a VDU, if it does not have the name of the VDU"})
		if charted {
			out.Variables = append(out.Variables, nf.Variable{Name: HelmNamesParameter, Type: "object", Description: "the path of the chart's value that gets the pods of a VDU: {VDU: {replica: path}}"})
		}
	}
	if runs {
		out.Variables = append(out.Variables, nf.Variable{Name: nf.ScriptImageParameter, Type: "string", Description: "image with the interpreters of the scripts of the VNF descriptor, which run as Jobs; if it is empty, no script runs"})
	}
}

func shown[V any](of map[string]V) string {
	names := slices.Sorted(maps.Keys(of))
	return nf.Clip(strings.Join(names[:min(len(names), maxShown)], ", "), maxDescription)
}

const maxDescription = 1000
