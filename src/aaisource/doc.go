// Package aaisource says what A&AI is to have of the service's VNF instances, networks
// and cloud regions: the objects and pods of an instance whose objects the service writes
// (nf.AAI), each network of a cloud region, and a flavor for each class of its nodes.
//
// An instance is a subject from the first object that it applies to the deletion of the
// last one. It is busy while an operation changes it, so that A&AI gets each result
// once, and does not change a VNF while SO's workflow runs. The pods of a region are
// followed by one watch of each kind of pod, for all its instances. Objects are read
// when a subject is written. Nodes are read when the region is registered, and whenever
// the subject is compared with A&AI, because their features hardly ever change.
//
// The package does not write to A&AI, and stores nothing.
package aaisource
