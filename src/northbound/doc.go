// Package northbound is the HTTP layer that all APIs of the service share. An
// API adds its routes. The layer authenticates each request, limits rate, size
// and slow clients, assigns a request id, writes the access log, metrics and
// audit entries, and validates the request against swagger.yaml. It converts
// errors to RFC 9457 problems by one table from nf kinds to statuses.
//
// Guarantees: a handler sees only authenticated requests, and only parameters
// and documents that the contract allows. Nothing is changed unless the intent
// could be recorded. This package never exposes a body, a secret or the cause
// of an internal error in the log or to the client.
//
// The package does not know the objects of an API, does not authorize, does not
// listen on a socket, and starts no goroutine.
package northbound
