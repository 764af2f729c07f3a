// Package broker runs a Kafka broker for the simulators of peers that send messages.
//
// The broker speaks Kafka's protocol on loopback. Clients log in with SCRAM-SHA-512, and
// may read and write only what their access control list allows. The simulator itself may do everything.
//
// The package does not know the messages. It keeps them in memory, and does not script faults.
package broker
