// Package kafka receives and sends messages of Kafka's topics.
//
// Guarantees: a message that a Client has received is committed only after its handler
// has returned, so that each message is handled at least once by the group, also if the
// process crashes. A message was sent only if the broker has acknowledged it. No topic
// is created. The password is read for each connection, and is in no error.
//
// The package does not know what messages mean, and does not remember which ones it has
// handled.
package kafka
