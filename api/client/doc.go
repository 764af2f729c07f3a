// Package client sends the requests of the native API. It is generated from
// swagger.yaml: a method for each operation, and a type for each document.
//
// A method returns the response as it is. If its status is 300 or more, the
// body is a Problem. The caller must close the body.
//
// NewClient takes an HttpRequestDoer, such as an http.Client, that sends the
// requests. A RequestEditorFn changes a request first, to add credentials for
// example. A method whose name ends with WithBody takes the body as a stream.
//
// The package has no retries. It leaves out the paths of ONAP and of the 2018 URL
// layout, and those outside /v1, such as /metrics.
package client

//go:generate ../../tools/api/lint client
