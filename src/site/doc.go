// Package site looks after sites: hosts that a run of playbooks or a script
// makes a cloud region, that are changed by running again, and that are brought
// back when the site is removed.
//
// It promises that one operation at a time changes a site, that an operation
// which is cut by the death of its process is run again by whoever is there,
// that a region is registered only when everything before it succeeded, that
// hosts are brought back only when their region is registered no more, and that
// nothing which the site holds as a secret is in an event, a failure or a step.
//
// It does not know how hosts are reached or changed: Reach and Runners do. It
// does not decide who may ask for what.
package site
