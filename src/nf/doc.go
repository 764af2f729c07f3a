// Package nf is the vocabulary of the service: cloud regions, packages, VNF
// instances and their operations, the errors that speak of them, and the rules
// that hold whatever the transport or the store.
//
// JSON tags in this package are the stored form; changing one needs a
// migration. What clients see is defined by each northbound package.
//
// The package does not store, send, render or apply anything, and it imports
// the standard library only.
package nf
