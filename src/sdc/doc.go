// Package sdc reads SDC, ONAP's design catalog: its services with their artifacts, and
// the notifications of the services that it distributes.
//
// Guarantees: requests are sent to the configured host only. A redirect is an error,
// and so is an artifact whose URL is not a path of the catalog. An artifact is accepted
// only if it has the checksum that SDC announced, and is not larger than the limit.
// Documents of SDC may have unknown fields and null instead of arrays.
//
// The package stores nothing, does not unpack archives, and does not receive or send
// messages.
package sdc
