// Package tacker implements the part of the v1.0 API of OpenStack Tacker that
// registers VIMs. A VIM is a cloud region: registered by either API, it is in both.
//
// Guarantees: requests and answers have Tacker's form, so that its client works
// unmodified. Errors are Tacker's, with the status of the error's kind. No answer has
// a secret. A VIM is stored only after its API server has accepted its credential. At
// most one VIM is the default one.
//
// The package does not connect to clusters, authenticate or authorize, and does not
// serve VNF packages or VNF instances. It stores and lists OpenStack VIMs, and does
// nothing else with them.
package tacker
