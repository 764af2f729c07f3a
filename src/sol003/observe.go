package sol003

import (
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
		topology, err := r.m.cfg.Descriptors.Topology(ctx, v.Package)
		if err != nil {
			r.attempt.Log().WarnContext(ctx, "failed to read the VNF descriptor", "package", v.Package, "error", err)
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
	mapping, _ := params[mappingParameter].(map[string]any)
	out := names{}
	for id, vdu := range f.VDUs {
		name := vdu.Name
		if mapped, isObject := mapping[id].(map[string]any); isObject {
			if text, isText := mapped["name"].(string); isText {
				name = text
			}
		}
		out[name] = id
	}
	return out
}

// of returns the VDU of a workload: the one with its name, or else the one whose name is
// the longest beginning of its name, as charts name their objects.
func (n names) of(workload string) (vdu string, found bool) {
	if vdu, found = n[workload]; found {
		return vdu, true
	}
	longest := ""
	for name, id := range n {
		if (strings.HasPrefix(workload, name+"-") || strings.HasSuffix(workload, "-"+name)) && len(name) > len(longest) {
			longest, vdu, found = name, id, true
		}
	}
	return vdu, found
}

// componentOf returns the component that a pod is. Found is false if the pod's workload is
// no VDU.
func componentOf(p nf.Pod, n names) (c nf.VNFC, found bool) {
	workload, kind := p.Workload.Name, p.Workload.Kind
	if kind == "" {
		workload, kind = p.Name, p.Kind
	}
	vdu, found := n.of(workload)
	return nf.VNFC{VDU: vdu, Resource: p.Name, Workload: kind}, found
}

// observe finds the components of the VNF, and records those that have changed.
func (r *run) observe(ctx context.Context) error {
	r.reading = true
	defer func() { r.reading = false }()
	pods, err := r.m.cfg.Instances.Pods(ctx, r.vnf.ID)
	if err := nf.IgnoreNotFound(err); err != nil {
		return err
	}
	known := r.names(ctx)
	before := components(r.record().Task.Before)
	now := []nf.VNFC{}
	for _, p := range pods {
		if p.Phase == "Succeeded" || p.Phase == "Failed" {
			continue
		}
		c, found := componentOf(p, known)
		if !found {
			continue
		}
		if at := indexOf(before, c); at >= 0 {
			c.Metadata, c.Configurable = before[at].Metadata, before[at].Configurable
		}
		now = append(now, c)
	}
	slices.SortFunc(now, func(a, b nf.VNFC) int { return strings.Compare(a.ID(), b.ID()) })
	r.journal.add("", r.vnf, func(rec *record) {
		rec.VNFCs = affected(before, now)
		rec.Task.Found = now
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

// affected returns the components that were added, and those that were removed.
func affected(before, now []nf.VNFC) []nf.AffectedVNFC {
	var out []nf.AffectedVNFC
	for _, c := range now {
		if indexOf(before, c) < 0 {
			out = append(out, nf.AffectedVNFC{VNFC: c, Change: nf.VNFCAdded})
		}
	}
	for _, c := range before {
		if indexOf(now, c) < 0 {
			out = append(out, nf.AffectedVNFC{VNFC: c, Change: nf.VNFCRemoved})
		}
	}
	return out
}
