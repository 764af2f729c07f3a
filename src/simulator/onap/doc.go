// Package onap starts the simulators of ONAP's components around the service, and runs one
// flow with all of them: a virtual firewall is designed in SDC, placed, created by SO,
// configured by CDS, healed and deleted.
//
// Surroundings are an A&AI, an SDC with its Kafka, OOF and SO, on loopback. They have the
// arguments with which the service uses them, and files with the credentials. A&AI has a
// cloud region, with the kubeconfig in it, and a tenant.
//
// A Flow has the steps, which a program runs one after the other, and between which a test
// looks at the cluster. Each step ends with an error if a peer would not accept a response.
//
// The package does not start the service or a cluster, and it does not repeat what the
// simulators check.
package onap
