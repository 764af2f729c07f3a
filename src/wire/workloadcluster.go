package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// WorkloadCluster makes a cloud region of a cluster that an instance creates with Cluster
// API.
type WorkloadCluster struct {
	Cluster     string               `json:"cluster"`             // name of the Cluster object
	Namespace   string               `json:"namespace,omitempty"` // default: that of the instance
	Region      string               `json:"cloud_region_id"`
	Credentials nf.RegionCredentials `json:"credentials,omitempty"` // default "service_account"
	Server      string               `json:"server,omitempty"`      // default: that of the kubeconfig
	ReadyWhen   nf.ReadyWhen         `json:"ready_when,omitempty"`  // default "available"
	HandOver    string               `json:"hand_over,omitempty"`   // URL that receives the kubeconfig
}

// WorkloadClusterOf converts a cluster.
func WorkloadClusterOf(w nf.WorkloadCluster) WorkloadCluster { return WorkloadCluster(w) }

// Domain returns the cluster as the engine has it.
func (w WorkloadCluster) Domain() nf.WorkloadCluster { return nf.WorkloadCluster(w) }

// ParentCluster says which cluster of another region a region is.
type ParentCluster struct {
	Region      string               `json:"cloud_region_id"`
	Namespace   string               `json:"namespace"`
	Cluster     string               `json:"cluster"`
	Credentials nf.RegionCredentials `json:"credentials"`
}

// parentOf converts the parent of a region; nil if it has none.
func parentOf(p *nf.Parent) *ParentCluster {
	if p == nil {
		return nil
	}
	out := ParentCluster{p.Region, p.Workload.Namespace, p.Workload.Cluster, p.Workload.Credentials}
	if out.Credentials == "" {
		out.Credentials = nf.AccountCredentials
	}
	return &out
}
