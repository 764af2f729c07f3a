// Package csar renders CSARs: packages of ETSI SOL004, with the Kubernetes manifests or
// the Helm chart among their artifacts.
//
// An instance is created from the manifests that the parameter lcm-kubernetes-def-files
// lists, or from the chart that helm_chart_path names. Without both, these are all
// artifacts that are manifests, in the order of the list of artifacts; or else the only
// chart; or else the translation of the VNF descriptor. All manifests together are one group: they are applied in the order that their
// kinds need, and then waited for. The other parameters are the values of the chart.
//
// Guarantees: nothing but listed artifacts is rendered. Manifests are literal: $ has no
// meaning. If all objects that name a namespace name the same one, the namespace of the
// instance replaces it.
//
// If a request names a flavor or an instantiation level of the VNF descriptor, the
// workloads of its VDUs get the pods of the level: those that have the name of the VDU, or
// that the request maps to it. A workload that an autoscaler scales keeps its own.
//
// The package does not read manifests and charts: the renderers that it is given do. It
// does not run scripts: they become hooks, which are Jobs in
// the region.
package csar
