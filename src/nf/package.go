package nf

import "time"

// Package is something deployable: a CSAR of ordered artifacts. Its content is
// a blob, addressed by the digest.
type Package struct {
	ID          string     `json:"id"` // the csar_id
	Name        string     `json:"name,omitempty"`
	Version     string     `json:"version,omitempty"`
	Description string     `json:"description,omitempty"`
	Kind        string     `json:"kind"`             // the renderer that understands it: "manifest" or "helm"
	Digest      string     `json:"digest"`           // "sha256:<hex>" of the archive's bytes
	Source      string     `json:"source,omitempty"` // where the service fetched it from, without credentials
	Upload      string     `json:"upload"`           // names the upload that holds the content in the store
	Size        int64      `json:"size"`             // bytes of the archive
	MediaType   string     `json:"media_type"`
	Files       []string   `json:"files"` // what the archive holds, sorted
	Variables   []Variable `json:"variables,omitempty"`
	Namespaces  []string   `json:"namespaces,omitempty"` // that it opens, besides the instance's own
	Warnings    []string   `json:"warnings,omitempty"`
	Removing    string     `json:"removing,omitempty"` // the attempt to remove it that is under way
	Project     string     `json:"project,omitempty"`  // the tenant; empty: DefaultProject
	Request     RequestKey `json:"request,omitzero"`   // under which its client uploaded it
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`
}

// Variable is a variable that a package declares in its metadata.
type Variable struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // one of string, integer, number, boolean, object, array
	Default     any    `json:"default,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Sensitive   bool   `json:"sensitive,omitempty"` // masked wherever parameters are shown
	Description string `json:"description,omitempty"`
}
