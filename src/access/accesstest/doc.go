// Package accesstest provides a set of projects, regions and identities for
// tests of access control, and the matrix of the expected outcome of every
// call.
//
// Guarantees: expected outcomes are computed by a few readable lines of its
// own, independently of the package under test. It does not make the calls: a
// test makes them through the guard, HTTP or another layer in front of the
// engine.
package accesstest
