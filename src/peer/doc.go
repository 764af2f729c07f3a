// Package peer connects to servers that the operator has configured, such as A&AI and Kafka:
// with a user, a password, a CA and a client certificate from files, which are loaded
// again when they change.
//
// The package does not restrict addresses, because no user of the service chooses them.
// It does not follow redirects; callers must not either, because a redirect would carry
// the password to another host.
package peer
