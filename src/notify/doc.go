// Package notify notifies subscribers of changes to the objects of VNF
// instances. It stores subscriptions, finds what has changed since a
// subscriber's last notification, and puts the changes into an outbox, which
// posts them to the subscriber's callback.
//
// Guarantees: a meaningful change is reported even if the process crashes or
// another replica takes over. The guarantees of the outbox hold for each
// subscription. Values of Secrets are never sent.
//
// The package does not watch regions and does not know instances: Source
// provides both. It does not report every intermediate state of an object, and
// does not authorize subscribers.
package notify
