// Package network creates, changes and removes virtual networks of cloud regions,
// and knows who holds them.
//
// Guarantees: a network exists as long as it has a holder. The number of holders is
// the size of a set, so that a repeated request changes nothing. The last holder that
// releases a network removes it, unless the network is kept. The objects of a network
// in its region belong to the network: no operation of an instance deletes them.
// Records survive a crash at any write, because operations of package operation make
// all changes.
//
// Order matters. A hold is written before its holder looks at the state of the
// network. A removal first sets the state to deleting, and then looks for holds. So a
// network is never removed while it has a holder that was told that it may use it.
//
// A driver (network/multus) turns the spec of a network into objects, and an
// attachment into what a pod needs. The package does not know what a spec means, does
// not change the objects of instances, and does not authorize requests.
package network
