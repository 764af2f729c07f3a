// Package fault raises and clears the alarms of VNFs. It compares the health of instances,
// which is watched elsewhere, with the alarms that it stores, and writes a notice with each
// change.
//
// Guarantees: one replica raises alarms. A fault has at most one alarm that is not cleared,
// also after a crash or when another replica takes over. An alarm is raised when its fault has lasted, and
// cleared when it is gone for as long, so a rolling update raises none. While a VNF is being
// changed, or its region is unreachable, nothing is raised or cleared. Nothing is written
// while nothing changes.
//
// The package does not watch regions, heal VNFs or deliver notices.
package fault
