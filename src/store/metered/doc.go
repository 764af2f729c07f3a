// Package metered tells how a store is doing: it stands before a store.KV and
// reports each request with its outcome and its time.
//
// It promises that nothing else changes: what goes in and comes out is what the
// store underneath says. It does not know what becomes of the reports, repeats
// nothing and logs nothing.
package metered
