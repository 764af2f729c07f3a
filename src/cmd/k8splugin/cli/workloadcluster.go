package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// workloadFlag is --workload-cluster: each makes a region of a Cluster.
type workloadFlag struct{ all []wire.WorkloadCluster }

func (f *workloadFlag) String() string { return "" }
func (f *workloadFlag) Type() string   { return "cluster[,key=value]" }

// Set parses "edge,region=edge-1,credentials=secret".
func (f *workloadFlag) Set(text string) error {
	name, rest, _ := strings.Cut(text, ",")
	if name == "" || strings.Contains(name, "=") {
		return fmt.Errorf("%q does not begin with the name of a Cluster, as in edge,region=edge-1", text)
	}
	w := wire.WorkloadCluster{Cluster: name}
	if err := setPairs(rest, map[string]func(string){
		"region": func(v string) { w.Region = v }, "namespace": func(v string) { w.Namespace = v }, "server": func(v string) { w.Server = v },
		"credentials": func(v string) { w.Credentials = nf.RegionCredentials(v) },
		"ready-when":  func(v string) { w.ReadyWhen = nf.ReadyWhen(v) },
		"hand-over":   func(v string) { w.HandOver = v },
	}); err != nil {
		return err
	}
	w.Region = cmp.Or(w.Region, name)
	f.all = append(f.all, w)
	return nil
}

// workloadsOf returns the clusters that become regions, as a description has them.
func workloadsOf(all []wire.WorkloadCluster) string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = w.Cluster + " region=" + w.Region
	}
	return strings.Join(out, "; ")
}
