// Package outbound calls hosts that a user has named: whom nobody may be made to
// call by that, what is called in the end, and why a call has failed.
//
// It does not know which hosts an operator allows or forbids, reads no URLs, and
// speaks no protocol above TCP.
package outbound
