// Package aairegion makes cloud regions of those that A&AI has, with the credentials that
// ESR, or an operator, has stored there.
//
// Rules find the credentials of a cloud region of A&AI. An Importer registers a region on
// demand, updates it when A&AI has other credentials, and marks one that A&AI no longer
// has.
//
// Guarantees: credentials are used only if an upload with them would be accepted. A region
// that another request has registered, or whose credentials a request has replaced, is not
// changed. A region is never removed because A&AI no longer has it. No error, log or
// reason quotes an attribute of A&AI. A&AI is only read.
//
// The package does not connect to a cluster, and does not decide which request may import
// a region.
package aairegion
