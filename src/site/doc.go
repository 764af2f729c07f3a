// Package site builds, changes and removes sites. A site is a set of hosts that
// a run of playbooks, or of a script, turns into a cloud region. A change runs
// it again; a removal resets the hosts.
//
// Guarantees: only one operation at a time changes a site. An operation that a
// crash interrupts is run again by any living replica. A region is registered
// only after every earlier step has succeeded. Hosts are reset only after their
// region is deregistered. No event, failure or step contains a secret of the
// site.
//
// Package operation runs the operations. A site's operation restarts with its
// first step after a crash, because its steps change nothing that is already
// correct.
//
// The package does not know how hosts are reached or changed; HostProbe and Runners
// do. It does not authorize requests.
package site
