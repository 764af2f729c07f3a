// Package nf defines the terms of the service: cloud regions, packages, VNF
// instances and their operations, the errors about them, and the rules that are
// independent of transport and store.
//
// JSON tags in this package are the stored form; changing one needs a
// migration. Each northbound package defines its own form for clients.
//
// The package does not store, send, render or apply anything, and it imports
// only the standard library.
package nf
