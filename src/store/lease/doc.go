// Package lease finds out which of the processes that share a store are alive.
//
// Who holds a lease moves its beat. A lease has lapsed when somebody has seen the
// beat stand still for the whole time of a lease: by his own clock, as no other
// is trusted, and only while he looked. So a process that has just come takes
// nobody for dead before that time is over, and one that stands still itself has
// given its work up (Keeper) before anybody may think so.
//
// Group has a lease for each process. Sightings is the judgement alone, for
// leases of other forms; Keeper is the beat alone; Rest is the wait between two
// looks at anything that others share.
//
// It does not keep what a lease is good for: work that a dead process had is
// found, claimed and fenced by whoever shares it out.
package lease
