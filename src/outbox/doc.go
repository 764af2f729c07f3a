// Package outbox delivers HTTP requests durably. A request is stored before it
// is sent, retried with back-off until its success rule accepts the response,
// and kept as a dead letter after the last attempt. Requests can be signed.
//
// Guarantees: a stored request is sent, even if the process crashes or another
// replica takes over. Delivery is at least once, and in order within a queue:
// after a crash between a response and its record, a request is sent again,
// under the same id. Nothing is sent to an address that the operator has not
// allowed. Replicas share the queues; one replica serves all queues of a shard.
//
// A Source decides which queues exist and what their requests contain. The
// package does not interpret them, and each source has an Outbox of its own.
package outbox
