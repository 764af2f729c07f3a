package manifest

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

// clusters returns the clusters of the metadata that become cloud regions. It omits those in
// which a fault was reported, or a value is unknown, and those without a region.
func (e *expander) clusters(m metadata) (out []nf.DeclaredCluster) {
	for i, n := range m.clusters {
		e.file = m.at.file
		r := entryReader{e: e, field: fmt.Sprintf("workload_clusters[%d]", i)}
		if w, ok := r.cluster(n); ok {
			out = append(out, nf.DeclaredCluster{WorkloadCluster: w, At: r.place(n)})
		}
	}
	for _, v := range nf.CheckClusters(out) {
		e.report.add(place{v.File, v.Line}, v.Field, "%s", v.Message)
	}
	return out
}

// cluster returns a cluster, and whether it is complete.
func (r *entryReader) cluster(n *yaml.Node) (w nf.WorkloadCluster, ok bool) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "", "must be a mapping")
		return w, false
	}
	set := map[string]func(string){
		"cluster": func(v string) { w.Cluster = v }, "namespace": func(v string) { w.Namespace = v },
		"cloud_region_id": func(v string) { w.Region = v }, "server": func(v string) { w.Server = v },
		"credentials": func(v string) { w.Credentials = nf.RegionCredentials(v) },
		"ready_when":  func(v string) { w.ReadyWhen = nf.ReadyWhen(v) },
		"hand_over":   func(v string) { w.HandOver = v },
	}
	for f := range fields(n) {
		name := f.key.Value
		if set[name] == nil {
			r.unknownKey(f.key, "", "cluster", "namespace", "cloud_region_id", "credentials", "server", "ready_when", "hand_over")
			continue
		}
		set[name](r.text(f.value, "."+name))
	}
	for _, name := range []string{"cluster", "cloud_region_id"} {
		if get(n, name) == nil {
			r.wrong(n, "."+name, "is missing")
		}
	}
	return w, !r.hollow && w.Region != ""
}

// checkClusters reports clusters that the package does not have. The plan contains all its
// objects. The namespace of an object may depend on the instance.
func checkClusters(all []nf.DeclaredCluster, plan render.Plan, r *report) {
	for _, c := range all {
		has := slices.ContainsFunc(plan.Stages, func(stage render.Stage) bool {
			return slices.ContainsFunc(stage.Objects, func(o render.Planned) bool {
				ns := o.Object.GetNamespace()
				return o.Object.GroupVersionKind().Group == nf.ClusterGroup && o.Object.GetKind() == "Cluster" && o.Object.GetName() == c.Cluster &&
					(ns == "" || c.Namespace == "" || ns == c.Namespace)
			})
		})
		if !has {
			v := c.At.Violation("cluster", "")
			where := ""
			if c.Namespace != "" {
				where = " in namespace " + c.Namespace
			}
			r.add(place{v.File, v.Line}, v.Field, "the package has no Cluster %s%s", c.Cluster, where)
		}
	}
}
