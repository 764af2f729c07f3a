// Package reload loads values from files, and loads them again when a file changes.
//
// It looks at the content of the files when a value is used: it needs no goroutine, and
// notices a change that keeps the time of modification. An invalid version is logged
// once, and the value of the previous one is used.
//
// The package does not know what the files contain, and logs no content.
package reload
