// Package notify notifies subscribers of SOL003. It stores subscriptions, and makes of
// each notice a notification for every subscription that selects it. An outbox posts
// them.
//
// Guarantees: a notice is dropped only when all of its notifications are stored, even if
// the process crashes or another replica takes over. A notification is delivered at least
// once, always under the same id, and in the order of the notices of its VNF. A
// subscription gets notices of its own project only. Credentials of callbacks are stored
// with the subscription alone; requests get them when they are sent.
//
// The package does not decide what a notice is made of, or when: its sources do. It does
// not authorize subscribers.
package notify
