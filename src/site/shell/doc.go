// Package shell opens connections to the hosts of sites, by SSH.
//
// It promises that no credential is offered to a host that has not proved itself
// by the key that is pinned for it, that a credential goes nowhere but there,
// and that errors tell a host which is not there from one that is another, and
// from one that does not let us in.
//
// It does not know what is done on a host.
package shell
