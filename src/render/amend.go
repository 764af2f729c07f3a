package render

import (
	"fmt"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

// Amend layers the stages of another plan over this one. An object that this
// plan already has is replaced, and stays as the Base of its replacement. The
// other objects are appended in new stages. If two amendments have the same
// object, the later one wins. The hooks of the other plan are ignored.
func (p Plan) Amend(name string, other Plan) Plan {
	out := p.clone()
	at := map[string][2]int{}
	for i, stage := range out.Stages {
		for j, o := range stage.Objects {
			at[o.key(p.Namespace)] = [2]int{i, j}
		}
	}
	for _, stage := range other.Stages {
		added := Stage{Name: fmt.Sprintf("%s: %s", name, stage.Name), Timeout: stage.Timeout, Amended: true}
		for _, o := range stage.Objects {
			o.Amends = true
			where, there := at[o.key(p.Namespace)]
			if !there {
				added.Objects = append(added.Objects, o)
				continue
			}
			former := out.Stages[where[0]].Objects[where[1]]
			if o.Base = former.Base; !former.Amends {
				o.Base = &former
			}
			out.Stages[where[0]].Objects[where[1]] = o
		}
		if len(added.Objects) > 0 {
			out.Stages = append(out.Stages, added)
			for j, o := range added.Objects {
				at[o.key(p.Namespace)] = [2]int{len(out.Stages) - 1, j}
			}
		}
	}
	out.Warnings = append(out.Warnings, other.Warnings...)
	return out
}

// Unamended returns the plan with its objects and stages as they were before
// any amendment, and without warnings: the operation that made it has reported them.
func (p Plan) Unamended() Plan {
	out := p.clone()
	out.Warnings = nil
	stages := out.Stages
	out.Stages = nil
	for _, stage := range stages {
		if stage.Amended {
			continue
		}
		for j, o := range stage.Objects {
			if o.Base != nil {
				stage.Objects[j] = *o.Base
			}
		}
		out.Stages = append(out.Stages, stage)
	}
	return out
}

// clone returns a copy whose stages and warnings can be changed without
// changing the original.
func (p Plan) clone() Plan {
	stages := make([]Stage, len(p.Stages))
	for i, stage := range p.Stages {
		stage.Objects = append([]Planned(nil), stage.Objects...)
		stages[i] = stage
	}
	p.Stages = stages
	p.Warnings = append([]string(nil), p.Warnings...)
	return p
}

// key identifies the object. An object without a namespace counts as being in
// the plan's, since it is not known here whether its kind is namespaced.
func (p Planned) key(namespace string) string {
	ref := nf.RefOf(p.Object)
	if ref.Namespace == "" {
		ref.Namespace = namespace
	}
	return ref.Key()
}
