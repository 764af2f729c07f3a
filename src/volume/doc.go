// Package volume knows the volumes of cloud regions, as a kind of the resources of
// package shared.
//
// A volume is a PersistentVolume. Its reclaim policy is Retain before anything else is
// done with it, so its data outlives the claims that bind it and their namespaces. It is
// always reserved: for the claim of the instance that uses it, or for a claim that does
// not exist, so that no other claim of the region binds it. A claim is bound without the
// checks of Kubernetes then, so Claim makes them.
//
// The package does not change the objects of instances.
package volume
