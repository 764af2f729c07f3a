// Package lease detects which of the processes that share a store are alive.
//
// The holder of a lease renews it by changing its heartbeat. A lease has
// expired when another process has observed the same heartbeat for the whole
// lease time. Each process measures by its own clock, because it trusts no
// other, and only while it observes. So a process that has just started
// declares no other expired before that time is over. A stalled process stops
// its own work (Renewer) before any other process can declare it expired.
//
// Group has a lease for each process. Renewer is the renewal alone.
//
// The package does not assign work: the users of a lease find, claim and fence
// the work of an expired process.
package lease
