// Package networkservice runs operations on network services: ordered groups of VNF
// instances in one or several regions, with the networks that they share.
//
// Guarantees: a request is accepted only if the change of every member is possible, as
// far as that is known in advance. One operation carries it out, group by group. If a
// member fails, the operation undoes what it did to all members, in reverse order, or
// keeps it if the request says so. Each change of a member is an operation of the
// instance, under a key made of the service's operation and the member, so that a
// replica that resumes the service's operation continues the same one.
//
// A shared network belongs to the members: each creates it if it does not exist, and
// the last one that leaves deletes it.
//
// The package does not know what an instance consists of, and does not reach a region.
// It does not order members by their content, and it has no forwarding graphs.
package networkservice
