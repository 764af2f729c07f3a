// Package clusterapi makes cloud regions of the clusters that VNF instances create with
// Cluster API (cluster.x-k8s.io/v1beta2, and v1beta1 where a region serves only that).
//
// Cluster API keeps the administrator's kubeconfig of a cluster in the Secret
// <cluster>-kubeconfig, key "value" (contract of control plane providers, section
// "Secret"). As soon as the control plane is initialized and answers, a Registrar creates
// a service account in the cluster, and registers the region with its token. It hands the
// region's kubeconfig over to a URL if the request asks for that, and follows the Secret.
//
// Guarantees: everything in the cluster has a name that is known in advance, so that a
// repeated call finds what an interrupted one has left. The region's record appears with
// its final credentials, or not at all. No error, log or message quotes a kubeconfig.
//
// The package does not decide when a region is registered or removed; the operations of
// instances do. It does not create, change or delete a Cluster, and does not move one; it
// is told of a move (Reparent).
package clusterapi
