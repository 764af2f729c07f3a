// Package notify tells subscribers what became of the objects of VNF instances:
// it keeps subscriptions, finds what has changed since a subscriber was told
// last, and posts it to his callback until it arrives.
//
// It promises that a change which a person would call one is told, also when the
// process dies or another replica goes on, and that a subscriber hears of an
// instance's changes in their order; he may hear of one twice when a process
// dies between the post and the note of it. A letter that cannot be delivered is
// kept for a person to look at. Nothing is posted to an address that the
// operator has not allowed, and no value of a Secret leaves.
//
// It does not know where changes come from, nor what an instance is: a Source
// tells both. It does not tell every state that an object went through, and
// decides nothing about who may subscribe.
package notify
