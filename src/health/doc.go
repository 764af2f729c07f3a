// Package health keeps the health of all VNF instances up to date: whether the
// objects of each are in its region and ready.
//
// It watches each kind of object once per region, for all instances together, and
// once for all regions that are registered with the same access. It keeps the
// objects' statuses in memory. A list of instances or a scrape of the metrics
// therefore sends no request to a region and does not write to the store. An
// object that changes often causes no writes. Every replica watches on its own.
// After a start, an instance is unknown until its kinds have been read.
//
// Guarantees: an object that cannot be watched is unknown, never healthy.
//
// The package does not explain why an object is not ready, and does not act on
// it.
package health
