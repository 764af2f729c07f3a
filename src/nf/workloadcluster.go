package nf

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
)

// WorkloadCluster makes a cloud region of a cluster that an instance creates with
// Cluster API: of a Cluster object, which the instance's package has.
type WorkloadCluster struct {
	Cluster     string            `json:"cluster"`               // name of the Cluster object
	Namespace   string            `json:"namespace,omitempty"`   // of it; empty: the instance's
	Region      string            `json:"region"`                // id of the cloud region
	Credentials RegionCredentials `json:"credentials,omitempty"` // empty: AccountCredentials
	Server      string            `json:"server,omitempty"`      // URL of the API server; empty: that of the kubeconfig
	ReadyWhen   ReadyWhen         `json:"ready_when,omitempty"`  // empty: ReadyAvailable
	HandOver    string            `json:"hand_over,omitempty"`   // URL that receives the region's kubeconfig; empty: none
}

// RegionCredentials says which credentials a region has that is made of a cluster.
type RegionCredentials string

// The credentials.
const (
	AccountCredentials RegionCredentials = "service_account" // of a service account that the service creates in the cluster
	SecretCredentials  RegionCredentials = "secret"          // those of the Secret of Cluster API: an administrator's
)

// ReadyWhen says when the Cluster of an instance is ready.
type ReadyWhen string

// The conditions.
const (
	ReadyAvailable ReadyWhen = "available" // its nodes are ready, too: the cluster needs a CNI plugin for that
	ReadyUsable    ReadyWhen = "usable"    // its API server is, and its region is registered
)

// Parent says which cluster a region is: the object of Cluster API in another region.
// It names no UID, because a move to another management cluster changes them.
type Parent struct {
	Region   string          `json:"region"` // that has the Cluster object
	Project  string          `json:"project"`
	Instance string          `json:"instance"` // that registered the region
	Workload WorkloadCluster `json:"workload"` // with a namespace

	Source  string `json:"source,omitempty"`  // digest of the kubeconfig that the access was made from
	Account string `json:"account,omitempty"` // digest of the objects of the account, which a new release may change; empty: none, or that of an earlier release
	Sent    int    `json:"sent,omitempty"`    // the number of the last request that hands the kubeconfig over
	Last    string `json:"last,omitempty"`    // digest of the one that was handed over last
}

// Is reports whether both are the same cluster of the same instance.
func (p Parent) Is(o Parent) bool {
	return p.Region == o.Region && p.Workload.Namespace == o.Workload.Namespace && p.Workload.Cluster == o.Workload.Cluster && p.Instance == o.Instance
}

// SameRegion reports whether both make the same region of the same cluster.
func (p Parent) SameRegion(o Parent) bool { return p.Is(o) && p.Workload.Region == o.Workload.Region }

// Ref returns the Cluster object, in a version of its API.
func (p Parent) Ref(version string) Ref {
	return Ref{Group: ClusterGroup, Version: version, Kind: "Cluster", Namespace: p.Workload.Namespace, Name: p.Workload.Cluster}
}

// ClusterGroup is the API group of Cluster API's Cluster.
const ClusterGroup = "cluster.x-k8s.io"

// The labels of a region that is made of a cluster say where its Cluster object is.
const (
	ParentRegionLabel    = ReservedPrefix + "parent-region"
	ParentNamespaceLabel = ReservedPrefix + "parent-namespace"
	ParentClusterLabel   = ReservedPrefix + "parent-cluster"
)

// Labels returns the labels of the region.
func (p Parent) Labels() map[string]string {
	return map[string]string{ParentRegionLabel: p.Region, ParentNamespaceLabel: p.Workload.Namespace, ParentClusterLabel: p.Workload.Cluster}
}

// Clusters returns the clusters that become regions: those of the request or, if it has no
// list, those that the package declares.
func (r Revision) Clusters() []WorkloadCluster {
	if r.Registered != nil {
		return r.Registered
	}
	return r.Workloads
}

// Clusters returns the clusters of the revision in force that become regions.
func (in Instance) Clusters() []WorkloadCluster {
	return Revision{Workloads: in.Workloads, Registered: in.Registered}.Clusters()
}

// ParentsOf returns the clusters of an instance's revisions that become regions, each
// once: as the first revision that has it says.
func ParentsOf(in Instance, revisions ...Revision) []Parent {
	var out []Parent
	for _, rev := range revisions {
		for _, w := range rev.Clusters() {
			w.Namespace = cmp.Or(w.Namespace, in.Namespace)
			p := Parent{Region: in.Region, Project: ProjectOf(in.Project), Instance: in.ID, Workload: w}
			if !slices.ContainsFunc(out, p.SameRegion) {
				out = append(out, p)
			}
		}
	}
	return out
}

// MaxWorkloads is how many clusters of one instance may become regions.
const MaxWorkloads = 16

// DeclaredCluster is a WorkloadCluster with its place: in a request, or in the metadata of a
// package.
type DeclaredCluster struct {
	WorkloadCluster

	At Place
}

// RequestedClusters returns the clusters of a request with their places.
func RequestedClusters(all []WorkloadCluster) []DeclaredCluster {
	out := make([]DeclaredCluster, len(all))
	for i, w := range all {
		out[i] = DeclaredCluster{WorkloadCluster: w, At: Place{Field: fmt.Sprintf("workload_clusters[%d]", i)}}
	}
	return out
}

// CheckClusters returns a violation for each field that is wrong.
func CheckClusters(all []DeclaredCluster) Violations {
	var v Violations
	if len(all) > MaxWorkloads {
		v = append(v, Violation{Field: "workload_clusters", File: all[0].At.File, Message: fmt.Sprintf("are %d, and at most %d are allowed", len(all), MaxWorkloads)})
	}
	clusters, regions := map[string]bool{}, map[string]bool{}
	for _, w := range all {
		v = append(v, w.check()...)
		switch {
		case clusters[w.Namespace+"/"+w.Cluster]:
			v = append(v, w.At.Violation("cluster", w.Cluster+" becomes another cloud region already"))
		case regions[w.Region]:
			v = append(v, w.At.Violation("cloud_region_id", w.Region+" is made of another cluster already"))
		}
		clusters[w.Namespace+"/"+w.Cluster], regions[w.Region] = true, true
	}
	return v
}

// check returns a violation for each field that is wrong by itself.
func (c DeclaredCluster) check() Violations {
	var v Violations
	add := func(field, message string) { v = append(v, c.At.Violation(field, message)) }
	if c.Cluster == "" || len(c.Cluster) > maxLabel || !isSubdomain(c.Cluster) {
		add("cluster", fmt.Sprintf("%q is not the name of a Cluster: lower-case letters, digits, '-' and '.', at most %d", Clip(c.Cluster, maxLabel), maxLabel))
	}
	if c.Namespace != "" {
		for _, wrong := range CheckNamespace("", c.Namespace) {
			add("namespace", wrong.Message)
		}
	}
	for _, wrong := range (Subject{Kind: RegionSubject, ID: c.Region}).CheckOwner("") {
		add("cloud_region_id", wrong.Message)
	}
	if !slices.Contains([]RegionCredentials{"", AccountCredentials, SecretCredentials}, c.Credentials) {
		add("credentials", fmt.Sprintf("are neither %q nor %q", AccountCredentials, SecretCredentials))
	}
	if !slices.Contains([]ReadyWhen{"", ReadyAvailable, ReadyUsable}, c.ReadyWhen) {
		add("ready_when", fmt.Sprintf("is neither %q nor %q", ReadyAvailable, ReadyUsable))
	}
	if message := checkAddress(c.Server); message != "" {
		add("server", message)
	}
	if message := checkAddress(c.HandOver); message != "" {
		add("hand_over", message)
	}
	return v
}

// checkAddress returns a message if a text is neither empty nor an https URL. A URL of the
// machine itself may be http.
func checkAddress(text string) string {
	if text == "" {
		return ""
	}
	address, err := url.Parse(text)
	switch {
	case err != nil || address.Host == "":
		return "is not a URL"
	case address.User != nil:
		return "holds a user name"
	case address.Scheme != "https" && (address.Scheme != "http" || !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, address.Hostname())):
		return "is not an https URL: it receives, or has, credentials"
	}
	return ""
}
