// Package sitetest is a host for tests: an in-process SSH server that runs
// commands with the shell of this machine.
//
// It implements only what sites need of an SSH server: public keys and
// passwords, sessions with their own process group, and exit codes.
package sitetest
