// Package schema checks objects before they are applied: against the region's
// OpenAPI v3 documents, and custom resources also against
// CustomResourceDefinitions among the objects.
//
// Guarantees: an object that the region's API server accepts is not rejected.
// Therefore the package ignores fields missing from an object that exists, and
// all values of an object that mutating admission may change. A region's
// document affects no other region, and its cost in time and memory is bounded
// whatever its content. Values of Secrets are not quoted.
//
// The package does not find everything that an API server rejects: it checks
// values of built-in kinds only as listed in natives, and it does not check
// webhooks, quotas, immutable fields and transition rules. It does not speak
// HTTP; a Source reads from the region.
package schema
