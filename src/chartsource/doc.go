// Package chartsource fetches the archives of charts from where they are
// published: OCI registries and HTTP chart repositories.
//
// It promises that nothing is asked that the operator has not allowed, be it by
// a reference, a redirect or a registry's word; that no address is connected to
// which means this machine or a cloud's own services; that connections are
// encrypted unless their host is excepted; and that an archive has the digest
// that was asked for, or is not returned. Nothing is written to disk.
//
// It does not look into archives, fetches no dependencies of a chart, checks no
// signatures, keeps nothing, uses no proxy, and does not know who may have
// something fetched.
package chartsource
