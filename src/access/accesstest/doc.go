// Package accesstest is a small world of projects, regions and people for tests
// of who may do what, and the matrix of what must come of every call.
//
// It promises to decide what must come of a call by reasoning of its own, in a
// few lines that can be read, and not by asking the package that it tests. It
// does not make the calls: a test does so through whatever is in front of the
// engine, from the guard itself to HTTP.
package accesstest
