// Package metered measures a store: it wraps a store.KV and reports each
// request with its outcome and duration.
//
// Guarantees: requests and results are passed on unchanged. The package does
// not process the reports, does not retry and does not log.
package metered
