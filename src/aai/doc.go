// Package aai makes the part of A&AI, ONAP's inventory, that describes VNF
// instances, networks and nodes equal to what the service has: k8s-resources,
// vservers with their interfaces and addresses, l3-networks, and flavors.
//
// Scheme turns facts into Documents, the objects that A&AI is to have. It is pure.
// A Writer compares Documents with A&AI, and sends the differences in transactions.
//
// Guarantees: only objects with the service's data-owner are changed or deleted.
// An object is changed only in the state in which it was compared, and the
// attributes that others have set stay. A change whose response was lost is found,
// and not made twice. Objects that A&AI rejects do not hold up others. Nothing is
// decided by the text of a response.
//
// The package does not know when something has changed, and stores nothing.
package aai
