// Package telemetry shows what the service does: Metrics for Prometheus,
// Tracing for an OpenTelemetry collector, and the handlers that a log passes
// through.
//
// It promises that what it shows is bounded (no client makes time series, and
// those of a region end with the region), that it shows no secret (spans bear
// ids, kinds and paths, never headers, bodies, parameters or texts of errors;
// Redacted is the log's last line of defence), and that nothing fails because
// nobody looks: a collector that is away costs some memory and one line a
// minute. Without an endpoint tracing costs nothing.
//
// It measures nothing by itself and sets nothing that is global: it is told, or
// asks the Sources it is given when somebody scrapes. What HTTP requests cost is
// measured by northbound.
package telemetry
