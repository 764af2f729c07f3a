// Package shell opens SSH connections to the hosts of sites.
//
// Guarantees: a credential is offered only to its host, and only after the host
// has proved the key that is pinned for it. Errors distinguish a host that does
// not answer, a host with another key, and a host that denies the credential.
//
// The package does not know what is done on a host.
package shell
