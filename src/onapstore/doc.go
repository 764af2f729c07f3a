// Package onapstore reads the data that an ONAP Multicloud K8s plugin has
// stored: in MongoDB its definitions, profiles, templates, connections and
// instances, and in etcd the configurations of the instances.
//
// Guarantees: unreadable records and dangling references are reported with
// their place, and the rest is still read. No message shows a value, a
// kubeconfig or a password.
//
// It does not write: its database interfaces have no method that could. It does
// not interpret, copy or import what it reads.
package onapstore
