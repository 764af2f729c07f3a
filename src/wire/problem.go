package wire

import "github.com/multicloud-k8s/k8splugin/src/nf"

// Problem is the body of every error response: RFC 9457, with extension members
// from RequestID on. Detail includes the text of every violation in Errors.
type Problem struct {
	Type         string      `json:"type"`
	Title        string      `json:"title"`
	Status       int         `json:"status"`
	Detail       string      `json:"detail"`
	Instance     string      `json:"instance"` // path of the request
	RequestID    string      `json:"request_id"`
	Kind         nf.Kind     `json:"kind"`
	Reason       string      `json:"reason,omitempty"`
	Confirm      string      `json:"confirm,omitempty"`
	Operation    string      `json:"operation,omitempty"`
	OperationURL string      `json:"operation_url,omitempty"`
	VNF          string      `json:"vnf_id,omitempty"`
	Errors       []Violation `json:"errors,omitempty"`
}
