// Package k8splugin holds what the whole project is described by: the contract
// of its HTTP API. It promises that Swagger is the file beside it, as it was when
// the program was built, so that a server and its documentation cannot differ.
//
// It contains no code of the service; that is under src.
package k8splugin

import _ "embed"

// Swagger is swagger.yaml: the OpenAPI 3.0 description of the HTTP API.
//
//go:embed swagger.yaml
var Swagger []byte
