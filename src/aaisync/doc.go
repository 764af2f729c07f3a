// Package aaisync keeps A&AI equal to what a Source says of VNF instances, networks
// and cloud regions.
//
// It is driven by state, not by events: a subject is written again when its version
// differs from the one that was written last. Nothing is stored when something
// changes, so nothing accumulates while A&AI is away, and nothing waits for it. The
// objects of a subject that no longer exists are deleted, because its record remains
// until A&AI has none of them. Every hour, each subject is compared with A&AI, and
// objects that no record names are deleted. Objects that SO's adapter has left of
// instances that do not exist are reported, and never changed.
//
// Guarantees: one replica writes at a time. The record of a subject names an object
// before A&AI can have it. Subjects do not hold up each other. A subject that waits for
// an object of others, or that A&AI rejects, says why.
//
// The package does not know the documents of A&AI, or how they are written. It does
// not delay operations, and does not decide which subjects A&AI is to have.
package aaisync
