package sol003

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// Scale accepts a change of the level of a scaling aspect. The engine adds the pods of the
// steps to the present numbers of replicas, or removes them. It returns nf.Invalid for an
// unknown aspect, and for steps that lead out of its levels; nf.Conflict if the VNF is not
// instantiated; and nf.Unsupported if a VDU of the aspect has no workload with replicas, or
// the components are hosts. A number that an autoscaler sets ends the occurrence as rolled back.
func (m *Manager) Scale(ctx context.Context, id string, req nf.ScaleVNFRequest) (nf.Occurrence, error) {
	return m.begin(ctx, id, nf.OccurrenceScale, req.VNFRequest, func(ctx context.Context, v nf.VNF) (record, error) {
		if err := instantiated(nf.Scale, v); err != nil {
			return record{}, err
		}
		flavor, err := m.resolve.flavor(ctx, v.Running(), v.Instantiated.Flavor)
		if err != nil {
			return record{}, err
		}
		steps := max(req.Steps, 1)
		if req.In {
			steps = -steps
		}
		from := v.Instantiated.Scale[req.Aspect]
		delta, err := flavor.Delta(req.Aspect, from, steps)
		if err != nil {
			return record{}, err
		}
		var scaling []nf.Scaling
		if !stacked(v) {
			scaling, err = m.resolve.scaling(ctx, v, flavor, delta)
		}
		after := cloned(v)
		if after.Instantiated.Scale == nil {
			after.Instantiated.Scale = map[string]int{}
		}
		after.Instantiated.Scale[req.Aspect] = from + steps
		return record{Task: task{After: after, Scaling: scaling}}, err
	})
}

// scaling returns the changes of the numbers of replicas that add pods to VDUs. The workload of a
// VDU can be a custom resource, if the parameters or the descriptor name its kind.
func (rs resolver) scaling(ctx context.Context, v nf.VNF, f tosca.Flavor, delta map[string]int) ([]nf.Scaling, error) {
	in, err := rs.cfg.engineOf(v).Instances.Instance(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	var scalable []nf.Ref
	var called []string
	kinds := kindsOf(f, v.Instantiated.Params)
	for _, it := range in.Inventory {
		custom := strings.Contains(it.Group, ".") && it.Kind == kinds[it.Name]
		if !it.Hook && (custom || replicated(it.Ref)) {
			scalable, called = append(scalable, it.Ref), append(called, it.Name)
		}
	}
	refs, matched := map[string]nf.Ref{}, namesOf(f, v.Instantiated.Params).match(called)
	for _, ref := range scalable {
		vdu, found := matched[ref.Name]
		if _, taken := refs[vdu]; found && (!taken || ref.Kind == kinds[ref.Name]) {
			refs[vdu] = ref
		}
	}
	var out []nf.Scaling
	for _, vdu := range slices.Sorted(maps.Keys(delta)) {
		ref, found := refs[vdu]
		switch {
		case delta[vdu] == 0:
			continue
		case !found:
			return nil, nf.E(nf.Unsupported, string(nf.Scale), "VNF "+v.ID, errors.New("the VDU "+vdu+" has no Deployment, StatefulSet or ReplicaSet; if its pods belong to a custom resource, additionalParams."+mappingParameter+" of the instantiation must have its kind and name"))
		}
		out = append(out, nf.Scaling{Workload: ref.Kind + "." + ref.Group + "/" + ref.Namespace + "/" + ref.Name, By: int64(delta[vdu])})
	}
	if len(out) == 0 {
		return nil, nf.E(nf.Unsupported, string(nf.Scale), "VNF "+v.ID, errors.New("the steps of the aspect change no number of pods"))
	}
	return out, nil
}

// replicated reports whether objects of the kind have replicas. Custom resources may have them, too.
func replicated(ref nf.Ref) bool {
	return ref.Group == "apps" && (ref.Kind == "Deployment" || ref.Kind == "StatefulSet" || ref.Kind == "ReplicaSet")
}

// Heal accepts the healing of a VNF: the engine creates the objects that do not exist, and
// replaces the pods of the components that the request names, or of all. Disruption budgets
// are respected. It returns nf.Invalid for a component that the VNF does not have, and
// nf.Conflict if the VNF is not instantiated.
func (m *Manager) Heal(ctx context.Context, id string, req nf.HealVNFRequest) (nf.Occurrence, error) {
	return m.begin(ctx, id, nf.OccurrenceHeal, req.VNFRequest, func(ctx context.Context, v nf.VNF) (record, error) {
		if err := instantiated(nf.Heal, v); err != nil {
			return record{}, err
		}
		if all, given := req.Extra["all"]; given {
			if _, isFlag := all.(bool); !isFlag {
				return record{}, invalid(nf.Heal, v, "additionalParams.all", "must be true or false")
			}
		}
		if err := m.resolve.known(ctx, nf.Heal, v, "vnfcInstanceId", req.VNFCs); err != nil {
			return record{}, err
		}
		return record{Task: task{After: v, Heal: req.VNFCs}}, nil
	})
}

// known returns nf.Invalid if one of the ids is not that of a component of a VNF, neither as
// the last occurrence has left them nor as they are now.
func (rs resolver) known(ctx context.Context, verb nf.Verb, v nf.VNF, field string, ids []string) error {
	recorded := func(id string) bool {
		return slices.ContainsFunc(components(v), func(c nf.VNFC) bool { return c.ID() == id })
	}
	ids = slices.DeleteFunc(slices.Clone(ids), recorded)
	if len(ids) == 0 {
		return nil
	}
	var pods []nf.Pod
	var err error
	if !stacked(v) {
		pods, err = rs.cfg.engineOf(v).Instances.Pods(ctx, v.ID)
	}
	if err := nf.IgnoreNotFound(err); err != nil {
		return err
	}
	flavor, err := rs.flavor(ctx, v.Running(), v.Instantiated.Flavor)
	if err != nil {
		return err
	}
	present := namesOf(flavor, v.Instantiated.Params).matchPods(pods)
	for _, p := range pods {
		if c, found := componentOf(p, present); found {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == c.ID() })
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return invalid(verb, v, field, "%s is not a component of the VNF", nf.Clip(strings.Join(ids, ", "), maxQuote))
}

// Connect accepts a change of the networks that the VNF's workloads are attached to. The
// attachments of a connection point replace all that it has; points that the request does not
// name keep theirs. Connect returns nf.Conflict if the VNF is not instantiated, and
// nf.Unsupported if its components are virtual machines or hosts.
func (m *Manager) Connect(ctx context.Context, id string, req nf.ConnectVNFRequest) (nf.Occurrence, error) {
	return m.begin(ctx, id, nf.OccurrenceConnectivity, req.VNFRequest, func(_ context.Context, v nf.VNF) (record, error) {
		return record{Task: task{After: v, Attach: req.Networks}}, instantiated(nf.VNFConnect, v)
	})
}

// The parameters of a change of the package that say how the pods are replaced.
const (
	upgradeParameter = "upgrade_type"
	vdusParameter    = "vdu_params"
	confirmParameter = "confirm"
	rollingUpdate    = "RollingUpdate"
)

// ChangePackage accepts the change to another package: the engine applies the whole
// difference, and deletes the objects that the new package does not have. If the engine
// requires a confirmation for that, the occurrence is rolled back, and its error has the
// value of the parameter confirm. It returns nf.Unsupported if there is no onboarded and
// enabled package of the project with the descriptor, if the VNF is scaled above the highest
// level of the new package, or if the components are virtual machines or hosts; nf.Invalid
// for a type of upgrade other than RollingUpdate, files that are not artifacts of the
// package, and a package without the VNF's flavor; and nf.Conflict if the VNF is not
// instantiated.
func (m *Manager) ChangePackage(ctx context.Context, id string, req nf.ChangeVNFPackageRequest) (nf.Occurrence, error) {
	return m.begin(ctx, id, nf.OccurrenceCurrentPackage, req.VNFRequest, func(ctx context.Context, v nf.VNF) (record, error) {
		if err := instantiated(nf.VNFChangePackage, v); err != nil {
			return record{}, err
		}
		if kind, err := textOf(nf.VNFChangePackage, v, req.Extra, upgradeParameter); err != nil || kind != "" && kind != rollingUpdate {
			return record{}, invalid(nf.VNFChangePackage, v, "additionalParams."+upgradeParameter, "must be %s", rollingUpdate)
		}
		confirm, err := textOf(nf.VNFChangePackage, v, req.Extra, confirmParameter)
		if err != nil {
			return record{}, err
		}
		p, err := m.resolve.packageOf(ctx, v.Project, req.VNFD)
		if err != nil {
			return record{}, err
		}
		flavor, err := m.resolve.flavor(ctx, p.ID, v.Instantiated.Flavor)
		if err != nil {
			return record{}, err
		}
		after := cloned(v)
		use(&after, p)
		in := after.Instantiated
		in.Package = ""
		in.Params, in.Level = paramsAfter(in.Params, req.Extra), levelAfter(in.Level, flavor.Levels)
		if in.Files, err = filesOf(nf.VNFChangePackage, v, p, in.Params); err != nil {
			return record{}, err
		}
		stays, err := m.resolve.scaleAfter(ctx, v, flavor, in)
		if err != nil {
			return record{}, err
		}
		after.Extensions, after.Configurable = merged(v.Extensions, req.Extensions), merged(v.Configurable, req.Configurable)
		if after.VIMs, err = m.resolve.reconnected(ctx, nf.VNFChangePackage, v, connecting{req.VIMs, req.Check}); err != nil {
			return record{}, err
		}
		inputs := inputsOf(in.Params, in.Flavor, orDefault(in.Level, flavor.DefaultLevel))
		if len(stays) > 0 {
			inputs[nf.ScaleParameter] = stays
		}
		return record{Task: task{After: after, Inputs: inputs, Confirm: confirm}}, checkTexts(string(nf.VNFChangePackage), "VNF "+v.ID, after)
	})
}

// scaleAfter sets the levels of the scaling aspects of a VNF with a new package, and the
// highest ones. An aspect that was scaled stays at its level; so do all if the new package
// does not have the VNF's instantiation level. The others get that of the instantiation
// level. It returns the levels that stay, as a parameter of the package; and nf.Unsupported
// if the new package does not have one of them: pods would go without a request to remove
// them.
func (rs resolver) scaleAfter(ctx context.Context, v nf.VNF, f tosca.Flavor, after *nf.InstantiatedVNF) (stays map[string]any, err error) {
	before := v.Instantiated
	present, err := rs.flavor(ctx, v.Running(), before.Flavor)
	if err != nil {
		return nil, err
	}
	from := present.AspectLevels(before.Level)
	after.Scale, after.MaxScale = scaleOf(f, after.Level)
	stays = map[string]any{}
	for _, aspect := range slices.Sorted(maps.Keys(before.Scale)) {
		at := before.Scale[aspect]
		most, has := after.MaxScale[aspect]
		switch {
		case at == from[aspect] && after.Level == before.Level:
		case at > most:
			return nil, nf.E(nf.Unsupported, string(nf.VNFChangePackage), "VNF "+v.ID,
				fmt.Errorf("the scaling aspect %q is at level %d, and the highest level of the new package is %d: scale the VNF in first", aspect, at, most))
		case has:
			after.Scale[aspect], stays[aspect] = at, at
		}
	}
	return stays, nil
}

// levelAfter returns the instantiation level of a VNF, if its new package has it.
func levelAfter[T any](level string, levels map[string]T) string {
	if _, has := levels[level]; !has {
		return ""
	}
	return level
}

// paramsAfter returns the additional parameters of a VNF after a change of its package. A
// selection of files replaces the former one.
func paramsAfter(params, extra map[string]any) map[string]any {
	out := maps.Clone(params)
	if out == nil {
		out = map[string]any{}
	}
	_, files := extra[filesParameter]
	_, chart := extra[chartParameter]
	if files || chart {
		delete(out, filesParameter)
		delete(out, chartParameter)
	}
	maps.Copy(out, extra)
	delete(out, upgradeParameter)
	delete(out, confirmParameter)
	delete(out, vdusParameter)
	delete(out, nf.HookHostsParameter)
	delete(out, nf.HookSecretParameter)
	return out
}
