// Package outbound connects to hosts that a user has named. It rejects
// addresses that no user may reach through the service, checks the address that
// a name resolves to, and classifies connection errors.
//
// It does not decide which further hosts an operator allows, sends no requests,
// and implements no protocol above TCP.
package outbound
