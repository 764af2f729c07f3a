// Package outbox delivers HTTP requests durably. A request is stored before it
// is sent, retried by its own policy until it succeeds, and kept as a dead letter
// if it is given up. No request is pending without end. Requests can be signed.
//
// Guarantees: a stored request is sent, even if the process crashes or another
// replica takes over. Delivery is at least once, and in order within a queue:
// after a crash between a response and its record, a request is sent again,
// under the same id. Nothing is sent to an address that the operator has not
// allowed. A target that is slow or down does not delay requests to others.
//
// A Source decides which queues exist and what their requests contain; without
// one, a request that is put makes its queue. The package does not interpret
// requests. Each source has an Outbox of its own.
package outbox
