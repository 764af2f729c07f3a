// Package shared creates, changes and removes resources of cloud regions that VNF
// instances share, networks and volumes, and stores their holders.
//
// Guarantees: a resource exists as long as it has a holder. The number of holders is
// the size of a set, so that a repeated request changes nothing. The last holder that
// releases a resource removes it, unless the resource is kept. The objects of a
// resource in its region belong to it: no operation of an instance deletes them.
// Records survive a crash at any write, because operations of package operation make
// all changes.
//
// Order matters. A hold is written before its holder looks at the state of the
// resource. A removal first sets the state to deleting, and then looks for holds. So a
// resource is never removed while it has a holder that was told that it may use it.
//
// A Kind (packages network and volume) knows the specs and the objects of its resources.
// This package does not know what a spec means, does not change the objects of instances,
// and does not authorize requests.
package shared
