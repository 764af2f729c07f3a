// Package catalog keeps what instances are made from and where they go: the
// packages that were uploaded and the cloud regions that were registered.
//
// It promises that nothing is kept that was not checked first (a region by
// connecting to it, a package by reading all of it), and that nothing is removed
// while an instance holds it: a hold and a removal never both succeed.
//
// It does not render or apply anything, and does not know what an operation is.
package catalog
