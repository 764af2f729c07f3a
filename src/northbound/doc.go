// Package northbound is the HTTP shell that all APIs of the service share. An
// API adds its routes; the shell has every request say who makes it, limits how
// often, how much and how slowly, gives it an id, a line in the access log and
// metrics, records it in the audit, holds it against swagger.yaml, and turns
// errors into RFC 9457 problems by one table from nf kinds to statuses.
//
// It promises that a handler sees only requests of an identity that was proved,
// and only parameters and documents that the contract allows, that nothing is
// changed which could not be recorded first, and that no body, no secret and no
// cause of an internal error reaches the log or the client by its doing.
//
// It does not know any noun of an API nor what an identity may do, does not
// listen on a socket, and starts no goroutine.
package northbound
