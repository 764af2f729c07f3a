// Package sitetest is a host for tests: an SSH server in the process, which runs
// what it is asked to with the shell of this machine.
//
// It does what an SSH server does, as far as sites need it: public keys and
// passwords, sessions with their own process group, exit codes; and no more.
package sitetest
