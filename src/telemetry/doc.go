// Package telemetry provides metrics for Prometheus, traces for an
// OpenTelemetry collector, and slog handlers for the log.
//
// Guarantees: the number of time series is bounded. No client can create
// series, and those of a region end with the region. No secret is shown: spans
// contain ids, kinds and paths, never headers, bodies, parameters or texts of
// errors. Redacted is the last safeguard of the log. Nothing fails without a
// consumer: an unreachable collector costs memory for a bounded queue and one
// log line per minute. Without an endpoint, tracing costs nothing.
//
// The package measures nothing by itself and sets no global state: it is called
// for events, and calls its Sources at each scrape. Package northbound measures
// HTTP requests.
package telemetry
