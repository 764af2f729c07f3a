// Package access says who asks and what he may: Rules are access.yaml, an
// Authenticator proves who makes a request, an Authorizer decides what he may
// do, and a Guard stands around the engine and the catalog, so that every API
// is protected by being built upon it. TLS is the listener's certificate.
//
// It promises that what no grant allows is refused, and so is what has no
// identity; that what one may not see is told apart from what does not exist by
// nothing that is said; that a broken new version of a file leaves the old one
// in force; and that no password, token or key is in an error or a log.
//
// It does not keep users, hand out sessions, or hide from a stopwatch what it
// hides from the reader. What a credential was when a request began it stays
// until the request ends.
package access
