// Package access provides access control. Rules holds the content of
// access.yaml, an Authenticator identifies the caller, an Authorizer decides
// what the caller may do, and TLS loads the listener's certificate. Guarded wraps
// the engine and the catalog, so that every API built on it is protected.
//
// Guarantees: a request without an identity, or without a grant, is denied. An
// object that the caller may not see is reported exactly like one that does not
// exist. If a new version of a file is invalid, the previous version stays
// active. No password, token or key appears in an error or a log.
//
// The package does not store users or sessions, and does not hide timing
// differences between hidden and absent objects. Credentials are checked when a
// request starts, and not again until it ends.
package access
