// Package migration has the report of an import from another program: what was imported,
// what was there already, and what could not be imported, with the reason.
//
// The package does not import anything, and does not know what the items are. A Report is
// not safe for concurrent use.
package migration
