// Package nfvo asks an NFVO for grants, as clause 9 of ETSI GS NFV-SOL 003 V3.3.1 says
// (Grants interface, version 1.4.0).
//
// Guarantees: credentials are sent to the configured servers only. An answer that cannot
// be honoured as a whole is an error: a zone or a VIM is never dropped in silence. A
// decision that the NFVO takes later is waited for until the context ends, and also by
// another process.
//
// The package does not decide which occurrences need a grant, or what becomes of one
// that is refused. It stores nothing.
package nfvo
