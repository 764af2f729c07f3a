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
	w := wire.WorkloadCluster{Cluster: name}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, is := strings.Cut(part, "=")
		switch {
		case part == "" && rest == "":
		case !is || value == "":
			return fmt.Errorf("%q is not key=value, as in edge,region=edge-1", part)
		case key == "region":
			w.Region = value
		case key == "namespace":
			w.Namespace = value
		case key == "credentials":
			w.Credentials = nf.RegionCredentials(value)
		case key == "server":
			w.Server = value
		case key == "ready-when":
			w.ReadyWhen = nf.ReadyWhen(value)
		case key == "hand-over":
			w.HandOver = value
		default:
			return fmt.Errorf("%q is not one of region, namespace, credentials, server, ready-when and hand-over", key)
		}
	}
	if name == "" || strings.Contains(name, "=") {
		return fmt.Errorf("%q does not begin with the name of a Cluster, as in edge,region=edge-1", text)
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
