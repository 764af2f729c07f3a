// Package render turns the bytes of a package and the values of one instance
// into an ordered plan of Kubernetes objects.
//
// Archive opens what a client uploaded, a Renderer (one folder below for each
// kind of package) makes groups of objects of it, Order arranges the groups
// into the stages of a Plan, and Encode keeps the plan. Everything is a pure
// function of its input: the same bytes and values give the same plan.
//
// The package does not talk to a cluster, a disk or a network, does not know
// which kinds a cluster serves, and never writes what it reads anywhere.
package render
