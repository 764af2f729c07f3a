// Package metricsserver simulates the metrics server of a Kubernetes cluster: the part of
// metrics.k8s.io/v1beta1 that returns the usage of the pods of a namespace. It is for
// tests. A proxy in front of an API server sends it the requests of its group, as an
// APIService would.
//
// A Simulator returns the measurements that a test has set, selected by namespace and
// labels. It rejects other methods, paths, parameters and media types, as the server does;
// what it rejects is also a violation, which fails a test. A journal has all requests. A
// script makes requests fail.
//
// The simulator measures nothing. It imports no package of the service, so that a mistake
// of the service is not repeated here.
package metricsserver
