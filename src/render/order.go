package render

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Order arranges groups into the stages of a plan. Each group goes into the
// earliest stage after all groups that it depends on. Groups of a stage keep
// the given order. A stage with both definitions (namespaces, custom resource
// definitions) and other objects is preceded by a stage of the definitions. A
// stage with both workloads and objects that their pods need for admission
// (service accounts, quotas, classes) is preceded by a stage of the latter. The
// objects of a stage are in KindOrder.
//
// The objects of a group without a Wait must become Current.
// PersistentVolumeClaims need only be applied, since they may stay pending
// until a pod of a later stage uses them. The timeout of a stage is the longest
// one of its groups. It has none if one of them has none.
//
// The error is nf.Violations. It reports groups of the same name, groups that
// depend on an unknown group or in a cycle, duplicate objects, and objects
// whose recreate policy is not allowed. An object without a namespace counts as
// being in the plan's.
func Order(groups []Group, namespace string) (Plan, error) {
	wrong := append(checkNames(groups), checkObjects(groups, namespace)...)
	if len(wrong) > 0 {
		return Plan{}, wrong
	}
	levels, cycle := levelsOf(groups)
	if cycle != nil {
		return Plan{}, nf.Violations{cycle[0].violation("dependency cycle: %s", strings.Join(namesOf(cycle), " → "))}
	}
	plan := Plan{Namespace: namespace}
	for _, level := range levels {
		early := slices.DeleteFunc(slices.Clone(level), func(g Group) bool { return !g.Prelude })
		late := slices.DeleteFunc(slices.Clone(level), func(g Group) bool { return g.Prelude })
		plan.Stages = append(append(plan.Stages, stagesOf(early)...), stagesOf(late)...)
	}
	return plan, nil
}

// Objects yields every object of the plan with the index of its stage, in
// order.
func (p Plan) Objects() iter.Seq2[int, *unstructured.Unstructured] {
	return func(yield func(int, *unstructured.Unstructured) bool) {
		for i, stage := range p.Stages {
			for _, o := range stage.Objects {
				if !yield(i, o.Object) {
					return
				}
			}
		}
	}
}

func checkNames(groups []Group) (wrong nf.Violations) {
	known := make(map[string]bool, len(groups))
	for _, g := range groups {
		if known[g.Name] {
			wrong = append(wrong, g.violation("two entries are named %q", g.Name))
		}
		known[g.Name] = true
	}
	for _, g := range groups {
		for _, name := range g.After {
			if !known[name] {
				wrong = append(wrong, g.violation("entry %q depends on %q, which does not exist", g.Name, name))
			}
		}
	}
	return wrong
}

func (g Group) violation(format string, args ...any) nf.Violation {
	return nf.Violation{File: g.File, Line: g.Line, Message: fmt.Sprintf(format, args...)}
}

func checkObjects(groups []Group, namespace string) (wrong nf.Violations) {
	type key struct{ group, kind, namespace, name string }
	seen := map[key]Object{}
	for _, g := range groups {
		for _, o := range g.Objects {
			gvk := o.GroupVersionKind()
			k := key{gvk.Group, gvk.Kind, cmp.Or(o.GetNamespace(), namespace), o.GetName()}
			if _, fault := g.recreate(o); fault != "" {
				wrong = append(wrong, nf.Violation{File: o.File, Line: o.Line, Field: "recreate", Message: fault})
			}
			first, twice := seen[k]
			if !twice {
				seen[k] = o
				continue
			}
			message := fmt.Sprintf("%s %q already exists, at %s:%d", k.kind, k.name, first.File, first.Line)
			wrong = append(wrong, nf.Violation{File: o.File, Line: o.Line, Message: message})
		}
	}
	return wrong
}

// levelsOf puts each group on the lowest level above all groups that it depends
// on. If the dependencies have a cycle, it returns that instead, with its first
// group repeated at the end.
func levelsOf(groups []Group) (levels [][]Group, cycle []Group) {
	l := leveler{groups: groups, index: make(map[string]int, len(groups)), level: make([]int, len(groups))}
	for i, g := range groups {
		l.index[g.Name] = i
	}
	for i := range groups {
		if !l.visit(i) {
			return nil, l.path
		}
	}
	for i, g := range groups {
		for len(levels) < l.level[i] {
			levels = append(levels, nil)
		}
		levels[l.level[i]-1] = append(levels[l.level[i]-1], g)
	}
	return levels, nil
}

// leveler traverses the groups depth first.
type leveler struct {
	groups []Group
	index  map[string]int
	level  []int   // from 1; 0: not visited, onPath: being visited
	path   []Group // being visited, or the cycle that was found
}

const onPath = -1

func (l *leveler) visit(i int) bool {
	g := l.groups[i]
	switch {
	case l.level[i] == onPath:
		first := slices.IndexFunc(l.path, func(other Group) bool { return other.Name == g.Name })
		l.path = append(l.path[first:], g)
		return false
	case l.level[i] > 0:
		return true
	}
	l.level[i] = onPath
	l.path = append(l.path, g)
	level := 1
	for _, before := range g.After {
		j := l.index[before]
		if !l.visit(j) {
			return false
		}
		level = max(level, l.level[j]+1)
	}
	l.path = l.path[:len(l.path)-1]
	l.level[i] = level
	return true
}

// stagesOf returns the stages of one level, or none if it has no objects.
func stagesOf(level []Group) []Stage {
	definitions := pick(level, isDefinition)
	rest := pick(level, func(o Object) bool { return !isDefinition(o) })
	if len(definitions) == 0 || len(rest) == 0 {
		return admissible(level)
	}
	first := stageOf(definitions, " (definitions)", WaitReady)
	return append([]Stage{first}, admissible(rest)...)
}

// admissible returns the stages of groups. If there are workloads, the objects
// that pods need for admission get a separate stage.
func admissible(level []Group) []Stage {
	prerequisites := pick(level, isPrerequisite)
	switch {
	case len(pick(level, func(Object) bool { return true })) == 0:
		return nil
	case len(prerequisites) == 0 || len(pick(level, isWorkload)) == 0:
		return []Stage{stageOf(level, "", "")}
	}
	rest := pick(level, func(o Object) bool { return !isPrerequisite(o) })
	return []Stage{stageOf(prerequisites, " (prerequisites)", WaitApplied), stageOf(rest, "", "")}
}

// pick returns the groups with only the objects that belong, and omits groups
// without any.
func pick(groups []Group, belongs func(Object) bool) []Group {
	var picked []Group
	for _, g := range groups {
		var objects []Object
		for _, o := range g.Objects {
			if belongs(o) {
				objects = append(objects, o)
			}
		}
		if g.Objects = objects; len(objects) > 0 {
			picked = append(picked, g)
		}
	}
	return picked
}

// stageOf merges groups into one stage. A wait policy that is not empty
// overrides the policies of the groups.
func stageOf(groups []Group, suffix string, wait Wait) Stage {
	stage := Stage{Name: joinNames(groups) + suffix, Timeout: longest(groups)}
	for _, g := range groups {
		stage.Prelude = stage.Prelude || g.Prelude
		for _, o := range g.Objects {
			w := cmp.Or(wait, g.Wait, defaultWait(o))
			recreate, _ := g.recreate(o)
			stage.Objects = append(stage.Objects, Planned{
				Object: o.Unstructured, Wait: w, File: o.File, Line: o.Line, Lines: o.Lines, Recreate: recreate == RecreateIfNeeded,
				Shared: o.Shared, Keep: o.Keep,
			})
		}
	}
	// Objects are sent in parallel, but started in this order: a pod that
	// starts before its ConfigMap exists looks broken.
	slices.SortStableFunc(stage.Objects, func(a, b Planned) int { return KindOrder(a.Object.GetKind(), b.Object.GetKind()) })
	return stage
}

func defaultWait(o Object) Wait {
	if groupKind(o) == "PersistentVolumeClaim" {
		return WaitApplied
	}
	return WaitReady
}

func namesOf(groups []Group) []string {
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = g.Name
	}
	return names
}

func joinNames(groups []Group) string {
	const shown = 4
	joined := strings.Join(namesOf(groups[:min(shown, len(groups))]), ", ")
	if more := len(groups) - shown; more > 0 {
		joined += fmt.Sprintf(" and %d more", more)
	}
	return joined
}

// longest returns the longest timeout. 0 means no limit, and is the longest.
func longest(groups []Group) time.Duration {
	var timeout time.Duration
	for _, g := range groups {
		if g.Timeout == 0 {
			return 0
		}
		timeout = max(timeout, g.Timeout)
	}
	return timeout
}
