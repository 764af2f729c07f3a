// Package keystone validates tokens of OpenStack's identity service, and turns them into
// identities: the user, the project of the token, and the roles in it as groups.
//
// A token is validated with the token of a service user, which a Client requests and
// renews. A valid token is used for at most 60 seconds without asking again, so that a
// revocation takes effect, and not after it expires.
//
// Guarantees: no token and no password is logged, is part of an error, or is kept in
// memory; tokens are remembered by their SHA-256, except that of the service user. An
// answer that is not understood is one that grants nothing.
//
// The package does not decide what an identity may do, does not manage users, and does
// not know trusts, domain-scoped or system-scoped rights: such a token has no project.
package keystone
