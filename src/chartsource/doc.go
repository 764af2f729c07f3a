// Package chartsource fetches chart archives from OCI registries and HTTP chart
// repositories.
//
// Guarantees: it sends requests only to hosts that the operator has allowed,
// including redirects and hosts that a registry or an index refers to. It does
// not connect to addresses of this machine or of a cloud's own services. The
// exception is a loopback host that is allowed by its exact name. Connections use
// TLS unless the host is excepted. An archive with another digest than the
// requested one is not returned. Nothing is written to disk.
//
// It does not unpack archives, fetch dependencies, check signatures, cache
// anything or use a proxy. It does not decide which users may fetch charts.
package chartsource
