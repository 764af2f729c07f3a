// Package onapimport imports an installation of ONAP's Multicloud K8s plugin:
// definitions, profiles, templates and connections as they are, and instances
// by adopting their objects, with the history of their configurations.
//
// Guarantees: an existing record does not change, except for an untouched
// default profile; a record that differs is reported. A repeated import adds the
// missing records only. An instance with recorded objects is adopted only if one
// of them is in its region with the instance's label. An item that cannot be
// imported does not affect the others; the report has the reason, and no values.
//
// It does not open databases, run operations or connect to regions: its caller
// gives it the parts that do.
package onapimport
