// Package onapstore reads what an ONAP Multicloud K8s plugin has stored: in
// MongoDB its definitions, profiles, templates, connections and instances, and
// in etcd the configurations of the instances.
//
// It promises that what it cannot read, or what refers to nothing, is told with
// its place, and does not hide the rest; and that no text of its own shows a
// value, a kubeconfig or a password.
//
// It does not write: it holds nothing that could. It does not judge what it has
// read, bring it anywhere, or know what it is for.
package onapstore
