package sol003

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/tosca"
)

// names are the VDUs of a VNF by the names of their workloads.
type names map[string]string

// names returns the VDUs of the VNF, as its new package and its present one have them.
func (r *run) names(ctx context.Context) names {
	out := names{}
	task := r.record().Task
	for _, v := range []nf.VNF{task.Before, task.After} {
		if v.Instantiated == nil {
			continue
		}
		topology, err := r.m.cfg.Descriptors.Topology(ctx, v.Running())
		if err != nil {
			r.attempt.Log().WarnContext(ctx, "failed to read the VNF descriptor", "package", v.Running(), "error", err)
			continue
		}
		flavor, err := topology.Flavor(v.Instantiated.Flavor)
		if err == nil {
			maps.Copy(out, namesOf(flavor, v.Instantiated.Params))
		}
	}
	return out
}

// mappingParameter has the workloads of VDUs that do not have the names of their VDUs:
// {VDU1: {kind: Deployment, name: web}}.
const mappingParameter = "vdu_mapping"

// namesOf returns the VDUs of a flavor by the names of their workloads.
func namesOf(f tosca.Flavor, params map[string]any) names {
	out := names{}
	for id, vdu := range f.VDUs {
		_, name := mapped(params, id)
		out[cmp.Or(name, vdu.Name)] = id
	}
	return out
}

// mapped returns the kind and name of the workload that parameters give a VDU; "" for those that
// they do not have.
func mapped(params map[string]any, vdu string) (kind, name string) {
	mapping, _ := params[mappingParameter].(map[string]any)
	of, _ := mapping[vdu].(map[string]any)
	kind, _ = of["kind"].(string)
	name, _ = of["name"].(string)
	return kind, name
}

// kindsOf returns the kinds of workloads that parameters or the descriptor name, by the names
// of the workloads.
func kindsOf(f tosca.Flavor, params map[string]any) map[string]string {
	out := map[string]string{}
	for id, vdu := range f.VDUs {
		kind, name := mapped(params, id)
		out[cmp.Or(name, vdu.Name)] = cmp.Or(kind, vdu.Workload)
	}
	return out
}

// match returns the VDUs by the names of workloads.
func (n names) match(workloads []string) names { return tosca.Match(n, workloads) }

// matchPods returns the VDUs by the names of the workloads of pods.
func (n names) matchPods(pods []nf.Pod) names {
	var workloads []string
	for _, p := range pods {
		name, _ := workloadOf(p)
		workloads = append(workloads, name)
	}
	return n.match(workloads)
}

// workloadOf returns the name and the kind of the object that a pod belongs to.
func workloadOf(p nf.Pod) (name, kind string) {
	if p.Workload.Kind == "" {
		return p.Name, p.Kind
	}
	return p.Workload.Name, p.Workload.Kind
}

// componentOf returns the component that a pod is. Found is false if the pod's workload is
// no VDU.
func componentOf(p nf.Pod, matched names) (c nf.VNFC, found bool) {
	workload, kind := workloadOf(p)
	vdu, found := matched[workload]
	return nf.VNFC{VDU: vdu, Resource: p.Name, UID: p.UID, Generation: p.Generation, Workload: kind}, found
}

// observe finds the components of the VNF, and records those that have changed.
func (r *run) observe(ctx context.Context) error {
	r.reading = true
	defer func() { r.reading = false }()
	pods, err := r.engine().Instances.Pods(ctx, r.vnf.ID)
	if err := nf.IgnoreNotFound(err); err != nil {
		return err
	}
	known := r.names(ctx).matchPods(pods)
	var now []nf.VNFC
	for _, p := range pods {
		if p.Phase == "Succeeded" || p.Phase == "Failed" || p.Status == nf.StatusDeleting {
			continue // it is no longer a component
		}
		if c, found := componentOf(p, known); found {
			now = append(now, c)
		}
	}
	return found(ctx, r, now)
}

// found records the components that the VNF has now.
func found(ctx context.Context, r *run, seen []nf.VNFC) error {
	before, now := components(r.record().Task.Before), append([]nf.VNFC{}, seen...)
	for i, c := range now {
		if at := indexOf(before, c); at >= 0 {
			now[i].Metadata, now[i].Configurable = before[at].Metadata, before[at].Configurable
		}
	}
	slices.SortFunc(now, func(a, b nf.VNFC) int { return strings.Compare(a.ID(), b.ID()) })
	after, err := r.m.resolve.reached(ctx, r.record().Task.After)
	if err != nil {
		return err
	}
	r.journal.add("", r.vnf, func(rec *record) {
		rec.VNFCs = affected(before, now)
		rec.Task.Found, rec.Task.After.VIMs = now, after
	})
	return nil
}

// components returns the components of a VNF.
func components(v nf.VNF) []nf.VNFC {
	if v.Instantiated == nil {
		return nil
	}
	return v.Instantiated.VNFCs
}

func indexOf(all []nf.VNFC, c nf.VNFC) int {
	return slices.IndexFunc(all, func(o nf.VNFC) bool { return o.ID() == c.ID() })
}

// affected returns the components that were added, those whose pods were changed or replaced
// under their names, and those that were removed.
func affected(before, now []nf.VNFC) []nf.AffectedVNFC {
	var out []nf.AffectedVNFC
	for _, c := range now {
		switch at := indexOf(before, c); {
		case at < 0:
			out = append(out, nf.AffectedVNFC{VNFC: c, Change: nf.VNFCAdded})
		case before[at].UID != "" && (before[at].UID != c.UID || before[at].Generation != c.Generation):
			out = append(out, nf.AffectedVNFC{VNFC: c, Change: nf.VNFCModified})
		}
	}
	for _, c := range before {
		if indexOf(now, c) < 0 {
			out = append(out, nf.AffectedVNFC{VNFC: c, Change: nf.VNFCRemoved})
		}
	}
	return out
}
