// Package schema checks the specifications of networks: objects in JSON, by tables of
// their fields.
//
// A table gives the form of an object, and the relations between its fields. A check
// returns the canonical form of an object, with defaults and without fields that say
// the same as a missing one, and reports all violations with their paths. Drivers
// write the tables, and check in code only relations that a table cannot express. The
// package also has the checks of attachments that drivers share.
//
// All functions are pure. The package does not know any field of a driver.
package schema
