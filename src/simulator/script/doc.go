// Package script has what all simulators of peers share: faults that a test
// scripts, and a journal of requests.
//
// The package does not know what a fault does, or what a request is.
package script
