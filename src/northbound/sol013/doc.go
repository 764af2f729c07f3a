// Package sol013 has what the APIs of ETSI have in common, as ETSI GS NFV-SOL 013
// describes it: attribute-based filters, selectors of attributes, pages, the
// authentication of callbacks, and the negotiation of versions and of the form of
// responses.
//
// An API lists resources by a Listing, and wraps each handler in Versioned. The program
// wraps the handler of all APIs in Formats.
//
// Guarantees: a request for a version that the path does not have reaches no handler.
// Every response below a path of a version has the headers Version and Accept-Ranges,
// even if no handler wrote it. A filter reads at most 4096 bytes and 20 conditions.
//
// The package knows no resource. It does not authenticate, and writes no errors: these
// are problems of package northbound, which have the three attributes that clients of
// ETSI's APIs read.
package sol013
