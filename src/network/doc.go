// Package network knows the virtual networks of cloud regions, as a kind of the
// resources of package shared.
//
// A driver (network/multus) turns the spec of a network into objects, and an
// attachment into what a pod needs. The package does not know what a spec means, and
// does not change the objects of instances.
package network
