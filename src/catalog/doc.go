// Package catalog stores the packages that instances are created from and the
// cloud regions that they are deployed to.
//
// Guarantees: an upload is stored only after the whole package was read and
// checked. Register stores a region only after connecting to it, or to its cloud;
// Enlist stores one without. Nothing is removed while an instance holds it: a hold and a
// removal never both succeed.
//
// It does not render or apply anything, and does not know about operations.
package catalog
