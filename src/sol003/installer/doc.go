// Package installer carries out the occurrences of VNFs that make a Kubernetes cluster on
// hosts, as the sample management driver of OpenStack Tacker does: the additional parameter
// k8s_cluster_installation_param names the hosts, and a script of the VNF package runs on
// each of them over SSH.
//
// Such a VNF is a site with the id of the VNF, which becomes a cloud region. The package has
// the methods of package sol003's Engine. An instantiation creates the site, a heal runs the
// script again, and a termination removes the site; all else is refused.
//
// Guarantees: those of package site. A request with a key starts one operation of the site,
// however often it is made. No error contains a credential.
//
// The package does not connect to hosts, does not keep records, and does not authorize
// requests.
package installer
