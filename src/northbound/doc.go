// Package northbound is the HTTP shell that all APIs of the service share. An
// API adds its routes; the shell gives every request an id, a line in the access
// log, metrics and a limit on its body, holds it against swagger.yaml, and turns
// errors into RFC 9457 problems by one table from nf kinds to statuses.
//
// It promises that a handler sees only parameters that the contract allows, that
// Decode returns only documents that the contract allows, and that no body, no
// secret and no cause of an internal error reaches the log or the client by its
// doing.
//
// It does not know any noun of an API, does not listen on a socket, and starts
// no goroutine; the timeouts of connections belong to who serves the handler.
package northbound
