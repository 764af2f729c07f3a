package sol003

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// zoneLabel is the label of nodes that says in which zone they are.
const zoneLabel = "topology.kubernetes.io/zone"

// grant asks for the grant, and makes what it says about the place of the VNF a part of
// the task. Its id and its places are stored together, before anything changes. An attempt
// that is resumed before asks again, unless it knows where the NFVO will decide: nothing
// has been done with an earlier grant.
func (r *run) grant(ctx context.Context) error {
	if r.record().Grant != "" {
		return nil
	}
	req, err := r.grantRequest(ctx)
	if err != nil {
		return err
	}
	g, err := r.ask(ctx, req)
	if err != nil {
		return err
	}
	task, err := r.m.resolve.granted(ctx, r.record().Occurrence, r.record().Task, g)
	if err != nil {
		return err
	}
	region := regionOf(task.Before, task.After)
	r.attempt.Note(func(op *nf.Operation) { op.Region = region })
	return r.journal.save(ctx, "", r.vnf, func(rec *record) {
		rec.Grant, rec.Region, rec.Pending = g.ID, region, ""
		rec.Task.After.Instantiated, rec.Task.After.VIMs = task.After.Instantiated, task.After.VIMs
	})
}

// ask asks for the grant, or waits for the decision about the one that was asked for. Others
// use this attempt's place in the meantime: an NFVO may take long to decide.
func (r *run) ask(ctx context.Context, req nf.GrantRequest) (g nf.Grant, err error) {
	pending := nf.PendingGrant{At: r.record().Pending}
	if pending.At == "" {
		request := func() (nf.Grant, nf.PendingGrant, error) {
			defer r.attempt.Yield()()
			return r.m.cfg.Granter.Ask(ctx, req)
		}
		if g, pending, err = request(); err != nil || pending.At == "" {
			return g, err
		}
		if err := r.journal.save(ctx, "", r.vnf, func(rec *record) { rec.Pending = pending.At }); err != nil {
			return g, err
		}
	}
	defer r.attempt.Yield()()
	return r.m.cfg.Granter.Await(ctx, req, pending)
}

// grantRequest returns the request for the grant of the occurrence.
func (r *run) grantRequest(ctx context.Context) (nf.GrantRequest, error) {
	o, t := r.record().Occurrence, r.record().Task
	req := nf.GrantRequest{VNF: o.VNF, Occurrence: o.ID, VNFD: t.Before.VNFD.ID, Operation: o.Operation, Automatic: o.Automatic}
	at := t.After
	if at.Instantiated == nil {
		at = t.Before
	}
	req.Params = t.Extra
	if in := at.Instantiated; in != nil {
		req.Flavor = in.Flavor
		if o.Operation == nf.OccurrenceInstantiate {
			req.Params, req.Level = in.Params, in.Level
		}
	}
	if o.Operation == nf.OccurrenceCurrentPackage {
		req.Destination = t.After.VNFD.ID
	}
	req.VIMs = slices.Sorted(maps.Keys(t.After.VIMs))
	var err error
	req.Resources, err = r.m.resolve.resources(ctx, o.Operation, t)
	return req, err
}

// resources returns the components that an occurrence adds, removes or changes. Kubernetes
// chooses the pods that a scaling removes, so that those in a request are as many, and may be
// others.
func (rs resolver) resources(ctx context.Context, kind nf.OccurrenceOperation, t task) (out []nf.GrantResource, err error) {
	existing := components(t.Before)
	switch kind {
	case nf.OccurrenceInstantiate:
		flavor, err := rs.flavor(ctx, t.After.Package, t.After.Instantiated.Flavor)
		if err != nil {
			return nil, err
		}
		counts, err := flavor.Counts(t.After.Instantiated.Level)
		if err != nil {
			return nil, err
		}
		for _, vdu := range slices.Sorted(maps.Keys(flavor.VDUs)) {
			number, given := counts[vdu]
			if !given {
				number = 1
			}
			out = append(out, added(vdu, number)...)
		}
		return out, nil
	case nf.OccurrenceScale:
		flavor, err := rs.flavor(ctx, t.Before.Running(), t.Before.Instantiated.Flavor)
		if err != nil {
			return nil, err
		}
		return scaled(flavor, t, existing)
	case nf.OccurrenceTerminate:
		return existingResources(existing, nf.VNFCRemoved), nil
	case nf.OccurrenceHeal:
		if len(t.Heal) > 0 {
			existing = slices.DeleteFunc(slices.Clone(existing), func(c nf.VNFC) bool { return !slices.Contains(t.Heal, c.ID()) })
		}
	default:
	}
	return existingResources(existing, nf.VNFCModified), nil
}

// scaled returns the components that a change of the levels of aspects adds or removes.
func scaled(flavor tosca.Flavor, t task, existing []nf.VNFC) (out []nf.GrantResource, err error) {
	for _, aspect := range slices.Sorted(maps.Keys(t.After.Instantiated.Scale)) {
		from, to := t.Before.Instantiated.Scale[aspect], t.After.Instantiated.Scale[aspect]
		if from == to {
			continue
		}
		delta, err := flavor.Delta(aspect, from, to-from)
		if err != nil {
			return nil, err
		}
		for _, vdu := range slices.Sorted(maps.Keys(delta)) {
			if delta[vdu] >= 0 {
				out = append(out, added(vdu, delta[vdu])...)
				continue
			}
			of := slices.DeleteFunc(slices.Clone(existing), func(c nf.VNFC) bool { return c.VDU != vdu })
			out = append(out, existingResources(of[max(0, len(of)+delta[vdu]):], nf.VNFCRemoved)...)
		}
	}
	return out, nil
}

// added returns new components of a VDU.
func added(vdu string, number int) (out []nf.GrantResource) {
	for i := range number {
		out = append(out, nf.GrantResource{ID: fmt.Sprintf("%s-%d", vdu, i+1), VDU: vdu, Change: nf.VNFCAdded})
	}
	return out
}

func existingResources(all []nf.VNFC, change nf.VNFCChange) (out []nf.GrantResource) {
	for _, c := range all {
		out = append(out, nf.GrantResource{ID: c.ID(), VDU: c.VDU, Change: change, Resource: c.Resource})
	}
	return out
}

// granted returns a task with the place that a grant demands. It returns nf.Unsupported for
// a grant that moves a VNF, or pods of a VDU, to another place than those that exist.
func (rs resolver) granted(ctx context.Context, o nf.Occurrence, t task, g nf.Grant) (task, error) {
	refuse := func(format string, args ...any) (task, error) {
		return t, nf.E(nf.Unsupported, "use", "grant "+g.ID, fmt.Errorf(format, args...))
	}
	if t.After.Instantiated == nil {
		return t, nil
	}
	t.After = cloned(t.After)
	in := t.After.Instantiated
	initial := o.Operation == nf.OccurrenceInstantiate
	key, other := describedVIM(g, t.After)
	if other != "" {
		return refuse("it has the VIM connection %s, and the VNF is on another VIM", other)
	}
	if key != "" && in.Engine == "" {
		vims, region, err := rs.connections(ctx, map[string]nf.VIMConnectionRequest{key: g.VIMs[key]})
		switch {
		case err != nil:
			return t, err
		case region.ID != in.Region && (in.Stack != "" || region.Type == nf.OpenStackRegion):
			return refuse("it has VIM %s, and a VNF of virtual machines stays on the VIM of its request", region.VIMName())
		case !initial && region.ID != in.Region:
			return refuse("it has VIM %s, and the VNF is in another one", region.VIMName())
		case initial:
			if err := moveTo(region, &t.After, vims); err != nil {
				return t, err
			}
		}
	}
	if len(g.Zones) == 0 {
		return t, nil
	}
	in.Zones = maps.Clone(in.Zones)
	if in.Zones == nil {
		in.Zones = map[string]string{}
	}
	for _, vdu := range slices.Sorted(maps.Keys(g.Zones)) {
		if !initial && in.Zones[vdu] != g.Zones[vdu] {
			return refuse("it places VDU %s in zone %s, and its pods are in %s", vdu, g.Zones[vdu], cmp.Or(in.Zones[vdu], "any zone"))
		}
		in.Zones[vdu] = g.Zones[vdu]
	}
	return t, nil
}

// moveTo places a VNF that is to be instantiated in the region that a grant demands. A
// namespace that the request does not name is the default one of that region.
func moveTo(region nf.Region, v *nf.VNF, vims map[string]nf.VIMConnection) error {
	in := v.Instantiated
	if region.ID != in.Region {
		if err := namespaced(*v, in, region); err != nil {
			return err
		}
	}
	in.Region, v.VIMs = region.ID, maps.Clone(v.VIMs)
	if v.VIMs == nil {
		v.VIMs = map[string]nf.VIMConnection{}
	}
	maps.Copy(v.VIMs, vims)
	return nil
}

// vimOf returns the key of the VIM that a grant demands; empty if it demands none.
func vimOf(g nf.Grant) string {
	if g.VIM == "" && len(g.VIMs) == 1 {
		return slices.Collect(maps.Keys(g.VIMs))[0]
	}
	return g.VIM
}

// describedVIM returns the key of the VIM connection that a grant selects and describes;
// empty if it has none, or selects that of the VNF. Other is the key of one that it selects
// and does not describe, if the VNF is on another VIM.
func describedVIM(g nf.Grant, v nf.VNF) (key, other string) {
	key = vimOf(g)
	_, described := g.VIMs[key]
	switch {
	case key == "" || described:
		return key, ""
	case v.VIMs[key].Region != v.Instantiated.Region:
		return "", key
	}
	return "", ""
}

// zoned returns the parameters that place the workloads of VDUs in zones.
func (r *run) zoned(ctx context.Context, in nf.InstantiatedVNF) ([]map[string]any, error) {
	if len(in.Zones) == 0 {
		return nil, nil
	}
	flavor, err := r.m.resolve.flavor(ctx, r.record().Task.After.Package, in.Flavor)
	if err != nil {
		return nil, err
	}
	var profiles []any
	for _, vdu := range slices.Sorted(maps.Keys(in.Zones)) {
		name := flavor.VDUs[vdu].Name
		if name == "" {
			return nil, nf.E(nf.Unsupported, "use", "the grant", errors.New("VDU "+vdu+" has no workload that can be placed in a zone"))
		}
		profiles = append(profiles, map[string]any{"workload": name, "profile": map[string]any{"node": map[string]any{zoneLabel: in.Zones[vdu]}}})
	}
	return []map[string]any{{nf.ComputeProfilesKey: profiles}}, nil
}
