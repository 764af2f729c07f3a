// Package render turns the content of a package and the values of one instance
// into an ordered plan of Kubernetes objects.
//
// Archive opens an uploaded archive. A Renderer (one subfolder for each kind of
// package) renders it to groups of objects. Order arranges the groups into the
// stages of a Plan, and Encode serializes the plan. Everything is a pure
// function of its input: the same bytes and values give the same plan.
//
// The package itself does not access a cluster, a disk or a network, and does
// not store what it reads. It does not know which kinds a cluster serves.
package render
